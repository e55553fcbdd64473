// defines: MomentOptions and MomentOptimizer, what Adam, AdamW and LAMB share.
#pragma once

#include <string>
#include <vector>

#include "optim/exclusion.h"
#include "optim/optimizer.h"

namespace basin {

/// The slot of v below.
inline constexpr const char* kSecondMoment = "second_moment";

struct MomentOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  Exclusions exclude_from_decay = default_exclusions();
  Factors lr_factors, decay_factors;  // of no preset
};
/// All but the factors, which no preset of LAMB's has a word of.
void bind_moment_options(OptionTable& table, MomentOptions& options, const std::string& weight_decay_help);

/// m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;  with the bias corrections of update t
///   r = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps),   t = 1, 2, ...
/// (Kingma & Ba 2015, algorithm 1). An element with m = 0 has r = 0, also where eps = 0 would make it 0/0.
/// With clean gradients (Optimizer::set_clean_gradients) v is theirs, and so is the norm in a clip of all gradients.
class MomentOptimizer : public Optimizer {
 public:
  bool takes_clean_gradients() const override { return true; }

 protected:
  MomentOptimizer(std::vector<ParameterInfo> parameters, const MomentOptions& options,
                  const Exclusions& without_trust = {});
  /// sqrt(v / (1 - beta2^t)) + eps of parameter i, in float64, as bias correction has it. NaN for t = 0 where it corrects.
  at::Tensor denominator(size_t i) const;
  /// m over its correction, of clean gradients where there are such.
  at::Tensor first_moment(size_t i) const;
  /// The rate's factor where bias correction acts on it.
  double rate_correction() const { return rule_.rate_correction(scalars(updates_done())); }
  void update(TensorLists& lists) override;
  MomentRule rule_;

 private:
  StepScalars scalars(int64_t t) const;
};

}  // namespace basin
