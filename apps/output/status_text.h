// defines: print() and print_json() of how a sweep stands, for `basin status`.
#pragma once

#include <string>

#include "sweep/look.h"

namespace basin {

void print(const std::string& out, const SweepLook& look);
void print_json(const std::string& out, const SweepLook& look);

/// "3.2 GB", "41 MB", "0.1 MB"
std::string format_bytes(double bytes);

}  // namespace basin
