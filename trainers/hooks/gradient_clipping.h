// defines: GradientClipping, a bound on the norm of the gradient that the optimiser gets.
#pragma once

#include <memory>
#include <vector>

#include "core/parameter.h"
#include "trainers/update_hook.h"

namespace basin {

struct GradientClippingOptions {
  double limit = 0;  // largest Euclidean norm; 0: none
};
void bind_options(OptionTable& table, GradientClippingOptions& options);

/// .grad <- min(1, limit/|g|) .grad in place, |g| the Euclidean norm over all parameters together, summed in
/// float64 (Pascanu, Mikolov & Bengio 2013, algorithm 1; torch's clip_grad_norm_, which adds 1e-6 to |g|). The factor is the
/// column clip_factor of /train. Cost: a pass over the gradient, two where it is clipped. Where noise was added and OngoingUpdate has
/// the clean gradient, |g| is of that one, and both are multiplied.
class GradientClipping final : public UpdateHook {
 public:
  using Options = GradientClippingOptions;
  static std::unique_ptr<UpdateHook> make(const Options& options, const HookSetup& setup);
  GradientClipping(double limit, const std::vector<ParameterInfo>& parameters)
      : limit_(limit), parameters_(parameters) {}

  void change_gradient(OngoingUpdate& update) override;
  std::vector<Column> train_columns() const override;
  void append_train_values(std::vector<double>& row) const override { row.push_back(factor_); }

 private:
  double limit_;
  std::vector<ParameterInfo> parameters_;
  double factor_ = 1;  // what the last gradient was multiplied by
};

}  // namespace basin
