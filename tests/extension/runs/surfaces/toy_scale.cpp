// defines: the kind of landscape toy_scale, for tests/python/extension/test_extension.py.
#include <ATen/ATen.h>

#include "landscape/affine_frame.h"
#include "runs/surfaces/registry.h"

namespace basin {
namespace {

struct ToyScaleOptions {
  int64_t points = 3;
};

void bind_options(OptionTable& table, ToyScaleOptions& options) {
  table.add("points", options.points, at_least(2), "factors from 0.5 to 1.5");
}

/// L(alpha w): all weights times one factor.
class ToyScale final : public LandscapeTask {
 public:
  ToyScale(LandscapeSubject& subject, const ToyScaleOptions& options) : subject_(subject) {
    const std::vector<double> factors = grid_values(0.5, 1.5, options.points, {1});
    plot_ = {"toy_scale",
             "loss at scaled weights",
             {{"alpha", "1", "factor", "landscape-coordinate", factors, {}}},
             subject.score_columns(),
             {},
             {}};
  }
  SurfacePlot plot() const override { return plot_; }
  CellState measure(int64_t cell, double* values) override {
    at::Tensor state = subject_.state(0).clone();
    state.narrow(0, 0, subject_.states().parameter_size()).mul_(plot_.coordinates(cell)[0]);
    return subject_.measure(state, values);
  }

 private:
  LandscapeSubject& subject_;
  SurfacePlot plot_;
};

std::unique_ptr<LandscapeTask> make_toy(LandscapeSubject& subject, const ToyScaleOptions& options) {
  return std::make_unique<ToyScale>(subject, options);
}

}  // namespace

LandscapeKind toy_scale_landscape() {
  return landscape_kind<ToyScaleOptions, make_toy>({
      .name = "toy_scale",
      .help = "loss at scaled weights, a toy",
  });
}

}  // namespace basin
