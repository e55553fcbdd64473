// defines: Claim, the hash of a contrast or hypothesis; registered_hash() and the seeds that are derived from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "study/contrast.h"

namespace basin {

/// A contrast or hypothesis and the SHA-256 of its canonical text.
struct Claim {
  std::string kind, name, hash;
  bool exploratory = false;
};
std::vector<Claim> claims_of(const std::vector<Contrast>& contrasts,
                             const std::vector<Hypothesis>& hypotheses);

/// SHA-256 of the hashes of all that isn't exploratory, sorted and joined by line ends.
std::string registered_hash(const std::vector<Claim>& claims);

/// Seed i = 1, 2, ...: the first eight hex digits of SHA-256(HASH:i), modulo 2^31, plus 1.
std::vector<int64_t> registered_seeds(const std::string& hash, int64_t count);

}  // namespace basin
