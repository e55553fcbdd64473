#include "study/registered.h"

#include "core/hash.h"

namespace basin {

std::vector<Claim> claims_of(const std::vector<Contrast>& contrasts,
                             const std::vector<Hypothesis>& hypotheses) {
  std::vector<Claim> claims;
  for (const Contrast& c : contrasts)
    claims.push_back({"contrast", c.name, sha256_hex(c.canonical), c.exploratory});
  for (const Hypothesis& h : hypotheses)
    claims.push_back({"hypothesis", h.name, sha256_hex(h.canonical), h.exploratory});
  return claims;
}

std::string registered_hash(const std::vector<Claim>& claims) {
  std::vector<std::string> hashes;
  for (const Claim& claim : claims)
    if (!claim.exploratory) hashes.push_back(claim.hash);
  std::sort(hashes.begin(), hashes.end());
  return sha256_hex(fmt::format("{}", fmt::join(hashes, "\n")));
}

std::vector<int64_t> registered_seeds(const std::string& hash, int64_t count) {
  std::vector<int64_t> seeds;
  for (int64_t i = 1; i <= count; ++i) {
    const std::string digits = sha256_hex(fmt::format("{}:{}", hash, i)).substr(0, 8);
    seeds.push_back(static_cast<int64_t>(std::stoull(digits, nullptr, 16) % (uint64_t{1} << 31)) + 1);
  }
  return seeds;
}

}  // namespace basin
