// defines: the kind "trajectory" of `basin landscape`.
#include <filesystem>

#include "core/error.h"
#include "landscape/trajectory_plane.h"
#include "runs/checkpoints.h"
#include "runs/probe_settings.h"
#include "runs/probing.h"
#include "runs/subject.h"
#include "runs/surfaces/registry.h"

namespace basin {
namespace {

namespace fs = std::filesystem;

struct TrajectoryOptions {
  std::vector<std::string> at = {"all"};  // all | every | loss | labels
  std::string centre = "final";           // final | mean
  int64_t alpha_points = 25, beta_points = 25;
  double margin = 0.2;  // beyond the path, as a share of its extent
};

void bind_options(OptionTable& table, TrajectoryOptions& options) {
  table.add("at", options.at, anything(),
            "checkpoints on the path: all, every (those that checkpoint_every keeps), loss, or labels");
  table.add("centre", options.centre, one_of({"final", "mean"}),
            "origin, about which principal components are taken: the last checkpoint, or the mean of all");
  table.add("alpha_points", options.alpha_points, at_least(2),
            "points along alpha; the origin is added if the spacing misses it");
  table.add("beta_points", options.beta_points, at_least(2), "points along beta, likewise");
  table.add("margin", options.margin, at_least(0),
            "margin around the path on each side, as a share of its extent");
}

struct PathPoint {
  std::string label, sha256;
  int64_t update = 0;
  double train_loss = NAN;  // of the whole training set, where the run evaluated it there
  at::Tensor state;
};

double stored_loss(const Checkpoint& checkpoint) {
  const auto found = checkpoint.progress.find("train_loss");
  return found == checkpoint.progress.end() ? NAN : std::get<double>(found->second);
}

// In order of update, one checkpoint per update: a loss level's is often the cadence's too.
std::vector<PathPoint> read_path(LandscapeSubject& subject, const TrajectoryOptions& options) {
  const std::string run_folder = fs::path(subject.file(0)).parent_path().parent_path().string();
  std::vector<PathPoint> path;
  for (const std::string& label : chosen_labels(run_folder, options.at)) {
    if (label == "average") continue;  // no point of the path
    const std::string file = checkpoint_path(run_folder, label);
    const Checkpoint checkpoint = read_checkpoint(file);
    if (!path.empty() && path.back().update == checkpoint.update) continue;
    path.push_back({label, content_hash(checkpoint), checkpoint.update, stored_loss(checkpoint),
                    subject.states().of(checkpoint, file)});
  }
  if (path.size() < 3) {
    throw ConfigError(fmt::format(
        "{}: a trajectory needs at least three checkpoints, there are {}: train with checkpoint_every "
        "(trajectory.at = {})",
        run_folder, path.size(), to_toml(options.at)));
  }
  return path;
}

std::vector<at::Tensor> states_of(const std::vector<PathPoint>& path) {
  std::vector<at::Tensor> states;
  for (const PathPoint& point : path) states.push_back(point.state);
  return states;
}

class Trajectory final : public LandscapeTask {
 public:
  Trajectory(LandscapeSubject& subject, const TrajectoryOptions& options)
      : subject_(subject), path_(read_path(subject, options)), plane_(plane_of(options)) {
    SurfaceAxis alpha = axis("alpha", 0, options.alpha_points, options.margin),
                beta = axis("beta", 1, options.beta_points, options.margin);
    plot_ = {"plane",
             "loss over the plane of a path's principal directions",
             {std::move(beta), std::move(alpha)},
             subject.score_columns(),
             {},
             {{"share_alpha", plane_.share[0]}, {"share_beta", plane_.share[1]}}};
    for (PathPoint& point : path_) point.state.reset();
  }
  SurfacePlot plot() const override { return plot_; }
  h5::Attributes recipe() const override {
    std::vector<std::string> labels, hashes;
    for (const PathPoint& point : path_) {
      labels.push_back(point.label);
      hashes.push_back(point.sha256);
    }
    return {{"path", labels}, {"path_sha256", hashes}};
  }
  CellState measure(int64_t cell, double* values) override {
    const std::vector<double> at = plot_.coordinates(cell);
    return subject_.measure(plane_.frame.at({at[1], at[0]}), values);
  }
  void conclude(SurfaceRecord& record) override {
    record.plots.push_back(path_plot());
    record.plots.push_back(component_plot());
  }

 private:
  TrajectoryPlane plane_of(const TrajectoryOptions& options) const {
    const std::vector<at::Tensor> states = states_of(path_);
    const at::Tensor centre = options.centre == "mean" ? mean_state(states) : states.back();
    return trajectory_plane(states, centre, subject_.states().parameter_size(), 2);
  }

  SurfaceAxis axis(const std::string& name, size_t component, int64_t points, double margin) const {
    double low = 0, high = 0;
    for (const AffineFrame::Projection& point : plane_.path) {
      low = std::min(low, point.coordinates[component]);
      high = std::max(high, point.coordinates[component]);
    }
    const double beyond = margin * (high - low);
    return {name,
            "weight",
            fmt::format("principal direction {}", component + 1),
            "landscape-coordinate",
            grid_values(low - beyond, high + beyond, points, {0}),
            {}};
  }

  SurfacePlot path_plot() const {
    SurfacePlot plot{"path",
                     "the path projected on the plane by least squares",
                     {{"update", "1", "updates done", "update", {}, {}}},
                     {{"beta", "weight", "beta", "landscape-coordinate", {}},
                      {"alpha", "weight", "alpha", "landscape-coordinate", {}},
                      {"distance", "weight", "distance from the plane", "landscape-distance", {}},
                      {"train_loss",
                       subject_.loss_units(),
                       "loss of the whole training set at the checkpoint itself",
                       "eval-train-loss",
                       {}}},
                     {},
                     {}};
    for (size_t i = 0; i < path_.size(); ++i) {
      plot.axes[0].values.push_back(static_cast<double>(path_[i].update));
      plot.axes[0].labels.push_back(path_[i].label);
      plot.columns[0].values.push_back(plane_.path[i].coordinates[1]);
      plot.columns[1].values.push_back(plane_.path[i].coordinates[0]);
      plot.columns[2].values.push_back(plane_.path[i].distance);
      plot.columns[3].values.push_back(path_[i].train_loss);
    }
    return plot;
  }

  SurfacePlot component_plot() const {
    SurfacePlot plot{
        "components",
        "principal directions of the path",
        {{"component", "1", "principal direction", "landscape-component", {}, {}}},
        {{"share", "1", "share of the squared distances from the centre", "landscape-share", plane_.share}},
        {},
        {}};
    for (size_t i = 0; i < plane_.share.size(); ++i)
      plot.axes[0].values.push_back(static_cast<double>(i + 1));
    return plot;
  }

  LandscapeSubject& subject_;
  std::vector<PathPoint> path_;
  TrajectoryPlane plane_;
  SurfacePlot plot_;
};

/// The loss over the plane of a run's two principal directions about `centre` (landscape/trajectory_plane.h),
/// which is also the plane's origin. plots: "plane"; "path", each checkpoint's coordinates by least squares
/// and its distance from the plane; "components", the share of each principal direction. The loss drawn under
/// a checkpoint is that of its projection; `distance` says how far off it is.
std::unique_ptr<LandscapeTask> make_trajectory(LandscapeSubject& subject, const TrajectoryOptions& options) {
  return std::make_unique<Trajectory>(subject, options);
}

}  // namespace

LandscapeKind trajectory_landscape() {
  return landscape_kind<TrajectoryOptions, make_trajectory>({
      .name = "trajectory",
      .help = "loss over the plane of a run's two principal directions, with its path",
      .least = 1,
      .most = 1,
  });
}

}  // namespace basin
