// defines: treatments(), which parameters have weight decay, a trust ratio, factors on rate and decay.
#pragma once

#include <string>
#include <vector>

#include "core/options.h"
#include "core/parameter.h"
#include "optim/kernels/elementwise.h"

namespace basin {

/// Lists of parameters in options. Each entry is one of
///   weight | bias | norm_weight | norm_bias   a parameter kind
///   dim<=1                                    tensors of at most that many dimensions (0 to 9)
///   name:conv*                                names like it; * any characters, ? one
///   no_decay                                  weight decay 0, by exclusion or because weight_decay is 0 (trust ratios alone)
using Exclusions = std::vector<std::string>;
/// Factors of parameters in options. Each element is ENTRY=FACTOR, "norm_bias=64": ENTRY as above but for
/// no_decay, FACTOR a number above 0. The last element that matches a parameter counts; where none does the
/// factor is 1. As with exclusions, an element that matches no parameter is without effect.
using Factors = std::vector<std::string>;

/// Factors on the learning rate and on weight decay.
struct FactorLists {
  Factors of_rate, of_decay;
};

/// bias, norm_weight and norm_bias: what code bases exclude by default, here by kind and not by name or shape.
const Exclusions& default_exclusions();
/// For option tables: each element is a parameter kind.
Constraint parameter_kinds();
/// For option tables: each element is an entry as above.
Constraint exclusions_from_decay();
Constraint exclusions_from_trust();
/// The option exclude_from_decay.
void bind_exclusion(OptionTable& table, Exclusions& from_decay);
/// The options lr_factors and decay_factors.
void bind_factors(OptionTable& table, Factors& lr_factors, Factors& decay_factors);

/// What weight_decay does in most optimisers, for their help.
inline constexpr const char* kDecoupledDecay =
    "decoupled: each update also subtracts lr * weight_decay * weight";
/// The options weight_decay, exclude_from_decay and the two factors, for options that have these four fields.
template <class Options>
void bind_decay(OptionTable& table, Options& options, const char* weight_decay_help = kDecoupledDecay) {
  table.add("weight_decay", options.weight_decay, at_least(0), weight_decay_help);
  bind_exclusion(table, options.exclude_from_decay);
  bind_factors(table, options.lr_factors, options.decay_factors);
}

struct TreatmentRules {
  double weight_decay = 0;
  Exclusions without_decay = {}, without_trust = {};
  Factors lr_factors = {}, decay_factors = {};
};
/// The rules of options that have these four fields.
template <class Options>
TreatmentRules decay_rules(const Options& options) {
  return {.weight_decay = options.weight_decay,
          .without_decay = options.exclude_from_decay,
          .lr_factors = options.lr_factors,
          .decay_factors = options.decay_factors};
}
/// One entry per parameter.
std::vector<Treatment> treatments(const std::vector<ParameterInfo>& parameters, const TreatmentRules& rules);
/// One entry per parameter: whether an element of the list matches it.
std::vector<bool> matched_by(const std::vector<ParameterInfo>& parameters, const Exclusions& list);
/// One factor per parameter. ConfigError for an element that is none.
std::vector<double> factors_of(const std::vector<ParameterInfo>& parameters, const Factors& list);

}  // namespace basin
