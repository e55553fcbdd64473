// defines: next_registration(), require_same_claims(), what a study may still claim.
#pragma once

#include "study/study.h"
#include "sweep/collect/registration_file.h"

namespace basin {

/// The folder's registration with this study's claims. Until a run under OUT/runs has begun, it is the study's. From then on
/// ConfigError, in one line that names it, where a contrast or hypothesis changed or is gone, or is new without `extend`, or is new,
/// not exploratory, and would change registered seeds. Tuning runs don't count: they choose on validation images.
Registration next_registration(const SweepPaths& out, const Study& study, bool extend);

/// require_same_study() and what next_registration() refuses. Where seeds are derived from the hypotheses, the hypotheses come
/// first: another seed is then what a changed one looks like.
void require_same_claims(const SweepPaths& out, const Study& study, bool extend);

}  // namespace basin
