// defines: Registration, OUT/registration.toml: what a study claimed, and when; next_registration(), write_registration().
#pragma once

#include <string>
#include <vector>

#include "runs/folder.h"
#include "study/registered.h"
#include "study/study.h"

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

/// ConfigError with file and line for a text that is none.
Registration parse_registration(const std::string& text, const std::string& file_name);
/// Empty where the folder has none.
Registration read_registration(const SweepPaths& out);

/// The folder's registration with this study's claims. Until a run under OUT/runs has begun, it is the study's. From then on
/// ConfigError, in one line that names it, where a contrast or hypothesis changed or is gone, or is new without `extend`, or is new,
/// not exploratory, and would change registered seeds. Tuning runs don't count: they choose on validation images.
Registration next_registration(const SweepPaths& out, const Study& study, bool extend);

/// require_same_study() and what next_registration() refuses. Where seeds are derived from the hypotheses, the hypotheses come
/// first: another seed is then what a changed one looks like.
void require_same_claims(const SweepPaths& out, const Study& study, bool extend);

/// Atomic; nothing where there is no claim.
void write_registration(const SweepPaths& out, const Registration& registration);

}  // namespace basin
