// defines: the kind "curve" of `basin landscape`.
#include <filesystem>

#include "core/clock.h"
#include "core/interrupt.h"
#include "core/progress.h"
#include "landscape/curve.h"
#include "landscape/curve_training.h"
#include "runs/surfaces/path.h"
#include "runs/surfaces/registry.h"

namespace basin {
namespace {

constexpr double kSaveSeconds = 5;  // between saved states: a write waits for the disk

struct CurveOptions {
  std::string curve = "bezier";  // bezier | chain
  int64_t bends = 1;
  int64_t points = 61;
  CurveTrainingOptions training;
};

void bind_options(OptionTable& table, CurveOptions& options) {
  table.add("curve", options.curve, one_of({"bezier", "chain"}), "a Bezier curve or a polygonal chain");
  table.add("bends", options.bends, at_least(1),
            "points between the two checkpoints; 1: quadratic, or one corner");
  table.add("points", options.points, at_least(3),
            "points measured on the curve, including both checkpoints and the middle");
  bind_options(table, options.training);
}

class CurveTask final : public PathTask {
 public:
  CurveTask(LandscapeSubject& subject, const CurveOptions& options)
      : PathTask(subject, "curve", "a curve of low loss between two checkpoints, and the straight line",
                 options.points),
        curve_(curve_kind(options.curve), subject.state(0), subject.state(1), options.bends),
        training_(curve_, subject.states().parameter_size(), subject.train().examples(), options.training,
                  subject.seed("curve")) {
    check_batch(subject, options.training.batch_size);
    const StatisticsMode statistics = statistics_mode(subject.options().bn);
    add_path({options.curve, statistics, [this](double t) { return curve_.at(t); }});
    add_path({"line", statistics, straight_line(subject.state(1))});
  }

  void prepare(const std::string& folder) override {
    const std::string path = folder + "/curve.h5";
    if (std::filesystem::exists(path)) training_.restore(read_checkpoint(path));
    if (training_.ended()) return;
    Model& model = subject().model();
    const NormMode mode = model.norm_mode();
    const int64_t ghost_batch = model.ghost_batch();
    model.set_norm_mode(NormMode::ghost_batch);
    train(path);
    model.set_norm_mode(mode, ghost_batch);
  }

  void conclude(SurfaceRecord& record) override {
    PathTask::conclude(record);
    h5::Attributes& attributes = record.plots[0].attributes;
    if (!training_.epoch_losses().empty()) attributes.emplace_back("epoch_losses", training_.epoch_losses());
    attributes.emplace_back("training_status", std::string(training_.diverged() ? "diverged" : "finished"));
    attributes.emplace_back("updates", training_.updates_done());
    for (int64_t k = 0; k < curve_.bends(); ++k)
      record.vectors.emplace_back(fmt::format("bend_{}", k + 1), curve_.bend(k));
  }

 private:
  /// A gradient goes through the batch in micro-batches, each with statistics of its own.
  static void check_batch(const LandscapeSubject& subject, int64_t batch_size) {
    const int64_t pass = subject.options().micro_batch;
    if (subject.model().has_batch_statistics() && batch_size > pass)
      throw ConfigError(
          fmt::format("curve.batch_size = {} violates curve.batch_size <= landscape.micro_batch = {}, "
                      "since batch normalisation takes the statistics of one pass",
                      batch_size, pass));
  }

  void train(const std::string& path) {
    const auto total = static_cast<double>(training_.updates());
    Progress progress("curve", total, "updates");
    progress.resume_at(static_cast<double>(training_.updates_done()));
    size_t epochs = training_.epoch_losses().size();
    Clock::time_point saved{};  // long ago: the first epoch is saved
    while (!training_.ended()) {
      training_.step([this](const at::Tensor& state, const at::Tensor& index, at::Tensor& gradient) {
        subject().states().scatter(state, /*running_statistics=*/false);
        double loss = 0;
        gradient = subject().train().part(index)->gradient(&loss);
        return loss;
      });
      const bool epoch_ended = training_.epoch_losses().size() > epochs;
      const bool due = epoch_ended && seconds_since(saved) > kSaveSeconds;
      if (due || training_.ended() || interrupt_signal() != 0) {
        save(path);
        saved = Clock::now();
      }
      epochs = training_.epoch_losses().size();
      if (interrupt_signal() != 0) fmt::print(stderr, "\ninterrupted; the same command resumes the curve\n");
      throw_if_interrupted();
      progress.update(static_cast<double>(training_.updates_done()),
                      epochs > 0 ? fmt::format("loss {:.4g}", training_.epoch_losses().back()) : "");
    }
    progress.finish(static_cast<double>(training_.updates_done()));
  }

  void save(const std::string& path) const {
    Checkpoint state;
    state.label = "curve";
    training_.save(state);
    write_checkpoint(path, state);
  }

  Curve curve_;
  CurveTraining training_;
};

/// A Bezier curve or a polygonal chain of low loss between two checkpoints, trained
/// (landscape/curve_training.h) and then measured, as is the straight line. Trained on the examples of
/// landscape.subset, the ones measured on (0: the whole training split), without augmentation and dropout;
/// normalisation by each batch's own statistics, as in training. vectors: bend_1, bend_2, ..., state vectors;
/// attributes: epoch_losses, training_status ("finished", "diverged": the curve stands where it last was
/// finite). Highest point, mean along the path and barrier: plot "summary" (runs/surfaces/path.h).
///
/// Cost: epochs gradients of the examples; then 2 `points` points. Resumable: a state every few seconds,
/// between epochs.
std::unique_ptr<LandscapeTask> make_curve(LandscapeSubject& subject, const CurveOptions& options) {
  return std::make_unique<CurveTask>(subject, options);
}

}  // namespace

LandscapeKind curve_landscape() {
  return landscape_kind<CurveOptions, make_curve>({
      .name = "curve",
      .help = "a curve of low loss trained between two checkpoints, and the straight line",
      .least = 2,
      .most = 2,
  });
}

}  // namespace basin
