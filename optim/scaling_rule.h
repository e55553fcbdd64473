// defines: scaling rules: how learning rate, warm-up and Adam's constants change with the batch size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/registry.h"
#include "optim/schedule_options.h"

namespace basin {

/// none, linear, sqrt, power, malladi, and the published tables mlperf, torchlars, tpu.
const std::vector<std::string>& scaling_rules();

/// Whether the rule is a table of rates and warm-ups instead of a formula.
bool is_published(const std::string& rule);

/// Whether scale_options() changes beta1, beta2 and eps by this rule: malladi.
bool scales_moments(const std::string& rule);

/// What learning_rate is multiplied by: 1 (none), B/base_batch (linear: Goyal et al. 2017), its square root
/// (sqrt, malladi), its power scaling_power (power), or a published table's rate. ConfigError where the table says nothing of this batch size.
double rate_factor(const ScheduleOptions& options, int64_t batch_size);

/// The warm-up in schedule_unit: `warmup`, by warmup_rule = "linear" times B/base_batch (You et al. 2019,
/// arXiv 1901.08256: in epochs, which is the same number of updates at every B), or a published table's
/// epochs.
double warmup_at(const ScheduleOptions& options, int64_t batch_size);

/// The options of an optimiser given for base_batch become those of this batch size, k = B/base_batch:
///   scaling_rule = "malladi"   learning_rate sqrt(k);   1 - beta -> k (1 - beta) of both;   eps / sqrt(k)
///   beta2_rule = "half_life"   beta2 -> beta2^k
///   decay_rule = "linear"      weight_decay -> k weight_decay
/// Malladi et al. 2022 (arXiv 2205.10287), the square root rule of Adam; Marek et al. 2025 (arXiv 2507.07101): beta2 halves the
/// weight of an example after the same number of examples at every B; Bergsma et al. 2025 (arXiv 2505.13738): at one learning rate
/// the time scale B / (lr wd) of the weights, in examples, is the same. Each leaves alone what it doesn't name. ConfigError where
/// k (1 - beta) > 1, for an optimiser without the constants that a rule scales, and where two rules scale beta2.
void scale_options(const ScheduleOptions& options, int64_t batch_size, const std::string& optimizer,
                   AnyOptions& of_optimizer);

}  // namespace basin
