// defines: merged_registration(), what the sweeps that are collected into one claimed, and since when.
#pragma once

#include <string>
#include <vector>

#include "sweep/collect/registration_file.h"

namespace basin {

/// What one sweep registered, and whether one of its runs has begun.
struct RegisteredSource {
  std::string folder;
  Registration registration;
  bool began = false;
};

/// Every claim of any source once, in the order of their first appearance: registered when the last of them registered it, after
/// runs had begun where that holds in any of them or where a source without it has a run that began, and exploratory where any marks
/// it so. `hash` is of those that remain registered before any run. IoError, in one line with both folders, where two sources have
/// other questions under one name.
Registration merged_registration(const std::vector<RegisteredSource>& sources);

}  // namespace basin
