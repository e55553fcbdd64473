#include "sweep/registration.h"

#include "core/error.h"
#include "core/provenance.h"
#include "sweep/folder.h"

namespace basin {
namespace {

namespace fs = std::filesystem;

bool any_run_began(const SweepPaths& out) {
  const fs::path runs = fs::path(out.path()) / "runs";
  if (!fs::is_directory(runs)) return false;
  const fs::directory_iterator entries(runs);
  return std::any_of(begin(entries), end(entries), [](const fs::directory_entry& entry) {
    const std::string run_id = entry.path().filename().string();
    return entry.is_directory() && status_of(entry.path().string(), run_id).status != RunState::queued;
  });
}

void refuse(const Claim& claim, const std::string& reason) {
  throw ConfigError(fmt::format("{} \"{}\" {}", claim.kind, claim.name, reason));
}

void require_unchanged(const RegisteredClaim& then, const std::vector<Claim>& now, const std::string& path) {
  const auto found =
      std::find_if(now.begin(), now.end(), [&](const Claim& claim) { return same_name(claim, then.claim); });
  if (found == now.end())
    refuse(then.claim, fmt::format("is gone after the runs (registered in {}): choose another --out", path));
  if (found->hash != then.claim.hash)
    refuse(then.claim, fmt::format("changed after the runs (registered in {}): choose another --out", path));
}

void require_leave(const Claim& claim, const Study& study, bool extend) {
  if (!extend) refuse(claim, "is new after the runs: --extend adds it, as exploratory");
  if (study.registered_seeds > 0 && !claim.exploratory)
    refuse(claim, "is new after the runs and would change the registered seeds: give it exploratory = true");
}

}  // namespace

Registration next_registration(const SweepPaths& out, const Study& study, bool extend) {
  const std::vector<Claim> now = claims_of(study.contrasts, study.hypotheses);
  const bool runs = any_run_began(out);
  Registration registration = runs ? read_registration(out) : Registration();
  if (!runs) registration.hash = registered_hash(now);
  const std::vector<RegisteredClaim> before = registration.claims;
  for (const RegisteredClaim& then : before) require_unchanged(then, now, registration_path(out));
  for (const Claim& claim : now) {
    if (std::any_of(before.begin(), before.end(),
                    [&](const RegisteredClaim& then) { return same_name(then.claim, claim); }))
      continue;
    if (runs) require_leave(claim, study, extend);
    registration.claims.push_back({claim, utc_now(), runs});
  }
  return registration;
}

void require_same_claims(const SweepPaths& out, const Study& study, bool extend) {
  if (study.registered_seeds > 0) next_registration(out, study, extend);
  require_same_study(out, study, extend);
  next_registration(out, study, extend);
}

}  // namespace basin
