#include "runs/surfaces/outside.h"

#include <ATen/ATen.h>

#include "core/error.h"
#include "core/file_lock.h"
#include "core/files.h"
#include "core/interrupt.h"
#include "core/math/nan.h"
#include "core/math/statistics.h"
#include "core/provenance.h"
#include "core/seed.h"
#include "runs/outside_probing.h"
#include "runs/surfaces/registry.h"

namespace basin {
namespace {

/// A problem's weights and the loss around them.
class OutsideTerrain final : public Terrain {
 public:
  OutsideTerrain(OutsideProblem& problem, uint64_t seed)
      : problem_(problem),
        seed_(seed),
        hash_(weights_hash(problem)),
        own_(problem.parameters()),
        origin_(problem.parameters().gather().to(at::kDouble)) {}

  size_t count() const override { return 1; }
  at::Tensor state(size_t /*i*/) const override { return origin_; }
  std::string label(size_t /*i*/) const override { return hash_.substr(0, 12); }
  const ParameterVector& parameters() const override { return problem_.parameters(); }
  at::Tensor origin() const override { return origin_; }
  std::string loss_units() const override { return problem_.loss_units(); }
  uint64_t seed(const std::string& stream, uint64_t index) const override {
    return derive_seed(seed_, stream, index);
  }

  h5::Attributes recipe() const override {
    return {{"weights_sha256", hash_},
            {"train_examples", problem_.examples()},
            {"bn_mode", problem_.batch_norm_mode()},
            {"dtype", std::string(problem_.dtype() == at::kDouble ? "float64" : "float32")},
            {"seed", static_cast<int64_t>(seed_)}};
  }
  std::vector<SurfaceColumn> score_columns() const override {
    return loss_columns("train", "examples", loss_units());
  }
  CellState measure(const at::Tensor& state, double* values) override {
    problem_.parameters().scatter(state);
    values[1] = kNaN;
    if (problem_.losses_in_one_pass()) {
      const at::Tensor losses = problem_.losses();
      const auto* first = losses.const_data_ptr<double>();
      const SampleMean mean = mean_of({first, first + losses.numel()});
      values[0] = mean.value;
      values[1] = mean.standard_error;
    } else {
      values[0] = problem_.loss();
    }
    if (std::isfinite(values[0])) return CellState::ok;
    values[0] = values[1] = kNaN;
    return CellState::nonfinite;
  }
  double loss(const at::Tensor& state) override {
    problem_.parameters().scatter(state);
    return problem_.loss();
  }

 private:
  OutsideProblem& problem_;
  uint64_t seed_;
  std::string hash_;      // of the weights
  ScopedParameters own_;  // puts them back
  at::Tensor origin_;
};

const LandscapeKind& kind_of(const std::string& name) {
  const LandscapeKind& kind = find_entry(landscape_kinds(), name, "kind of landscape");
  if (kind.make_on_terrain && kind.least == 1) return kind;
  std::vector<std::string> known;
  for (const LandscapeKind& entry : landscape_kinds())
    if (entry.make_on_terrain && entry.least == 1) known.push_back(entry.name);
  throw ConfigError(fmt::format("a landscape of kind {} is of a run's checkpoints; of a problem: {}", name,
                                fmt::join(known, ", ")));
}

void compute(LandscapeTask& task, SurfacePlot& plot,
             const std::function<void(int64_t done, int64_t points)>& report) {
  const auto columns = plot.columns.size();
  std::vector<double> values(columns);
  for (int64_t cell = 0; cell < plot.cells(); ++cell) {
    throw_if_interrupted();
    if (report) report(cell, plot.cells());
    plot.state.push_back(static_cast<uint8_t>(task.measure(cell, values.data())));
    for (size_t i = 0; i < columns; ++i) plot.columns[i].values.push_back(values[i]);
  }
}

}  // namespace

std::string landscape_outside(OutsideProblem& problem, const OutsideLandscapeRequest& request,
                              const std::function<void(int64_t, int64_t)>& report) {
  const LandscapeKind& kind = kind_of(request.kind);
  if (!problem.answers(Answer::loss)) throw Unanswered({Answer::loss});
  const std::string folder = request.out + "/landscape";
  make_folders(folder);
  const FileLock lock(folder + "/lock", folder);
  check_outside(problem, request.seed);
  SurfaceRecord record;
  record.kind = kind.name;
  {
    OutsideTerrain terrain(problem, request.seed);
    const std::unique_ptr<LandscapeTask> task = kind.make_on_terrain(terrain, request.kinds.at(kind.name));
    record.recipe = recipe_of(kind, request.kinds, terrain, *task);
    record.plots = {task->plot()};
    compute(*task, record.plots[0], report);
    task->conclude(record);
  }
  record.provenance = collect_provenance();
  record.provenance.emplace_back("ended_utc", utc_now());
  const std::string path = folder + "/" + kind.name + ".h5";
  write_surface_file(path, record);
  return path;
}

}  // namespace basin
