// defines: Registration, OUT/registration.toml: what a study claimed, and when; read_registration(), write_registration().
#pragma once

#include <string>
#include <vector>

#include "runs/folder.h"
#include "study/registered.h"

namespace basin {

/// A contrast or hypothesis as it was registered.
struct RegisteredClaim {
  Claim claim;
  std::string utc;
  bool runs_before = false;  // a run had begun before: exploratory, whatever the study says
};

struct Registration {
  std::string hash;  // registered_hash() of those registered before any run
  std::vector<RegisteredClaim> claims;
};

std::string registration_path(const SweepPaths& out);
bool same_name(const Claim& a, const Claim& b);  // and kind

/// ConfigError with file and line for a text that is none.
Registration parse_registration(const std::string& text, const std::string& file_name);
/// Empty where the folder has none.
Registration read_registration(const SweepPaths& out);
/// Atomic; a folder without a claim has no file.
void write_registration(const SweepPaths& out, const Registration& registration);

}  // namespace basin
