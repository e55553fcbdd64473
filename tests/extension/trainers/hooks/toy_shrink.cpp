// defines: the hook toy_shrink, for tests/python/extension/test_extension.py.
#include <ATen/ATen.h>

#include "trainers/hooks/registry.h"
#include "trainers/tables.h"
#include "trainers/update_hook.h"

namespace basin {
namespace {

struct ToyShrinkOptions {
  double share = 0;
};

void bind_options(OptionTable& table, ToyShrinkOptions& options) {
  table.add("toy_shrink", options.share, half_open(0, 1),
            "share that weights lose after each update; 0: none");
}

/// w <- (1 - share) w after each update; the summary has the length that the last one took. No state.
class ToyShrink final : public UpdateHook {
 public:
  using Options = ToyShrinkOptions;
  static std::unique_ptr<UpdateHook> make(const Options& options, const HookSetup& setup) {
    if (options.share == 0) return nullptr;
    return std::make_unique<ToyShrink>(options.share, setup.model.parameter_table());
  }
  ToyShrink(double share, const std::vector<ParameterInfo>& parameters)
      : share_(share), parameters_(parameters) {}

  void after_update(int64_t /*update*/) override {
    const at::NoGradGuard no_grad;
    for (const ParameterInfo& parameter : parameters_) at::Tensor(parameter.tensor).mul_(1 - share_);
  }
  std::vector<Column> train_columns() const override {
    return {column("toy_factor", "1", "toy factor", "what the weights were multiplied by")};
  }
  void append_train_values(std::vector<double>& row) const override { row.push_back(1 - share_); }
  void at_end(Summary& summary, bool /*diverged*/) override {
    double squares = 0;
    for (const ParameterInfo& parameter : parameters_)
      squares += parameter.tensor.detach().square().sum().item<double>();
    summary.emplace_back("toy_shrunk", share_ / (1 - share_) * std::sqrt(squares));
  }

 private:
  double share_;
  std::vector<ParameterInfo> parameters_;
};

}  // namespace

HookEntry toy_shrink_hook() {
  return hook_entry<ToyShrink>({
      .name = "toy_shrink",
      .help = "Weights that shrink, a toy.",
      .on = {"toy_shrink=0.1"},
      .summary = {column("toy_shrunk", "weight", "length that the last update took", "toy-shrunk")},
  });
}

}  // namespace basin
