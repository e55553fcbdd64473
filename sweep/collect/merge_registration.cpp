#include "sweep/collect/merge_registration.h"

#include <algorithm>

#include "core/error.h"

namespace basin {
namespace {

/// nullptr where the source hasn't registered it.
const RegisteredClaim* find_claim(const RegisteredSource& source, const Claim& wanted) {
  const std::vector<RegisteredClaim>& claims = source.registration.claims;
  const auto found = std::find_if(claims.begin(), claims.end(), [&](const RegisteredClaim& other) {
    return same_name(other.claim, wanted);
  });
  return found == claims.end() ? nullptr : &*found;
}

RegisteredClaim merged_claim(const Claim& claim, const std::vector<RegisteredSource>& sources) {
  RegisteredClaim merged{claim, "", false};
  std::string first;  // folder
  for (const RegisteredSource& source : sources) {
    const RegisteredClaim* own = find_claim(source, claim);
    if (own == nullptr) {
      merged.runs_before = merged.runs_before || source.began;
      continue;
    }
    if (first.empty()) first = source.folder;
    if (own->claim.hash != claim.hash)
      throw IoError(fmt::format("{} \"{}\" is one question in {} and another in {}: not merged", claim.kind,
                                claim.name, first, source.folder));
    merged.utc = std::max(merged.utc, own->utc);  // ISO 8601
    merged.runs_before = merged.runs_before || own->runs_before;
    merged.claim.exploratory = merged.claim.exploratory || own->claim.exploratory;
  }
  return merged;
}

}  // namespace

Registration merged_registration(const std::vector<RegisteredSource>& sources) {
  Registration merged;
  std::vector<Claim> before_any_run;
  for (const RegisteredSource& source : sources) {
    for (const RegisteredClaim& claim : source.registration.claims) {
      if (find_claim({"", merged, false}, claim.claim) != nullptr) continue;
      const RegisteredClaim all = merged_claim(claim.claim, sources);
      merged.claims.push_back(all);
      if (!all.runs_before) before_any_run.push_back(all.claim);
    }
  }
  merged.hash = registered_hash(before_any_run);
  return merged;
}

}  // namespace basin
