// defines: the kinds "line" and "plane" of `basin landscape`.
#include "core/error.h"
#include "landscape/affine_frame.h"
#include "landscape/direction_band.h"
#include "landscape/directions.h"
#include "runs/surfaces/registry.h"

namespace basin {
namespace {

const std::vector<double> kAround = {-1, 1}, kBetween = {-0.25, 1.25};

struct LineOptions {
  int64_t points = 31;
  std::vector<double>
      alpha;                // [from, to]; empty: [-0.25, 1.25] between checkpoints, [-1, 1] along directions
  int64_t directions = 10;  // random ones, where there is one checkpoint
  DirectionOptions direction;
};

void bind_options(OptionTable& table, LineOptions& options) {
  table.add("points", options.points, at_least(2),
            "points on the line; checkpoints that the spacing misses are added");
  table.add("alpha", options.alpha, anything(),
            "[from, to]; empty: [-0.25, 1.25] between two checkpoints, [-1, 1] along directions");
  table.add("directions", options.directions, at_least(1),
            "random directions, if there is only one checkpoint");
  bind_options(table, options.direction);
}

struct PlaneOptions {
  int64_t alpha_points = 25, beta_points = 25;
  std::vector<double> alpha, beta;  // [from, to]; empty: [-0.25, 1.25] towards a checkpoint, else [-1, 1]
  DirectionOptions direction;
};

void bind_options(OptionTable& table, PlaneOptions& options) {
  table.add("alpha_points", options.alpha_points, at_least(2),
            "points along alpha; checkpoints that the spacing misses are added");
  table.add("beta_points", options.beta_points, at_least(2), "points along beta, likewise");
  table.add("alpha", options.alpha, anything(),
            "[from, to]; empty: [-0.25, 1.25] towards a checkpoint, else [-1, 1]");
  table.add("beta", options.beta, anything(), "likewise");
  bind_options(table, options.direction);
}

/// Values of an axis and 0 (and `held`) among them. ConfigError naming `key` where `range` is neither empty
/// nor [from, to], from < to; empty: `usual`.
std::vector<double> axis_values(const std::string& key, const std::vector<double>& range,
                                const std::vector<double>& usual, int64_t points,
                                const std::vector<double>& held) {
  if (!range.empty() && (range.size() != 2 || !(range[0] < range[1])))
    throw ConfigError(
        fmt::format("{} = {} must be [from, to] with from < to, or empty", key, to_toml(range)));
  const std::vector<double>& ends = range.empty() ? usual : range;
  return grid_values(ends[0], ends[1], points, held);
}

std::string random_axis_name(const std::string& norm) {
  if (norm == "none") return "random direction";
  return norm == "unit" ? "random direction of length 1" : "random direction, " + norm + "-normalised";
}

SurfaceAxis alpha_axis(const std::string& name, bool to_checkpoint, const std::string& norm,
                       std::vector<double> values) {
  const std::string what = to_checkpoint ? "share of the way to the checkpoint" : random_axis_name(norm);
  return {name, "1", what, "landscape-coordinate", std::move(values), {}};
}

/// One checkpoint to another.
class Between final : public LandscapeTask {
 public:
  Between(Terrain& terrain, const LineOptions& options)
      : terrain_(terrain), frame_(terrain.state(0), terrain.parameters().size()) {
    frame_.add_point(terrain.state(1));
    plot_ = {"line",
             "loss on the way from one checkpoint to the other",
             {alpha_axis("alpha", true, "",
                         axis_values("line.alpha", options.alpha, kBetween, options.points, {0, 1}))},
             terrain.score_columns(),
             {},
             {{"length_alpha", frame_.length(0)}}};
  }
  SurfacePlot plot() const override { return plot_; }
  int64_t tile() const override { return 1; }  // a line is short; what is begun anew should be too
  CellState measure(int64_t cell, double* values) override {
    return terrain_.measure(frame_.at(plot_.coordinates(cell)), values);
  }

 private:
  Terrain& terrain_;
  AffineFrame frame_;
  SurfacePlot plot_;
};

/// One row a random direction.
class Along final : public LandscapeTask {
 public:
  Along(Terrain& terrain, const LineOptions& options) : terrain_(terrain), options_(options) {
    std::vector<double> numbers(static_cast<size_t>(options.directions));
    std::iota(numbers.begin(), numbers.end(), 0.0);
    plot_ = {"line",
             "loss along random directions",
             {{"direction", "1", "random direction", "landscape-direction", numbers, {}},
              alpha_axis("alpha", false, options.direction.norm,
                         axis_values("line.alpha", options.alpha, kAround, options.points, {0}))},
             terrain.score_columns(),
             {},
             {}};
  }
  SurfacePlot plot() const override { return plot_; }
  CellState measure(int64_t cell, double* values) override {
    const std::vector<int64_t> at = plot_.position(cell);
    return terrain_.measure(along(at[0]).at({plot_.coordinates(cell)[1]}), values);
  }
  void conclude(SurfaceRecord& record) override {
    const SurfacePlot& line = record.plots[0];
    SurfacePlot band{"band", "loss along random directions, all together", {line.axes[1]}, {}, {}, {}};
    for (const SurfaceColumn& column : line.columns) {
      if (is_loss_error(column)) continue;  // of the same examples: no error of the band's
      const std::vector<SurfaceColumn> columns = direction_band(line, column);
      band.columns.insert(band.columns.end(), columns.begin(), columns.end());
    }
    record.plots.push_back(std::move(band));
  }

 private:
  /// The line along `direction`; the last one is kept.
  AffineFrame& along(int64_t direction) {
    if (frame_ && direction == direction_) return *frame_;
    frame_.emplace(terrain_.origin(), terrain_.parameters().size());
    frame_->add_direction(terrain_.direction(options_.direction, static_cast<uint64_t>(direction)));
    direction_ = direction;
    return *frame_;
  }

  Terrain& terrain_;
  LineOptions options_;
  SurfacePlot plot_;
  std::optional<AffineFrame> frame_;  // of `direction_`
  int64_t direction_ = -1;
};

class Plane final : public LandscapeTask {
 public:
  Plane(Terrain& terrain, const PlaneOptions& options)
      : terrain_(terrain), frame_(terrain.state(0), terrain.parameters().size()) {
    SurfaceAxis alpha = add_axis("alpha", 1, options.alpha, options.alpha_points, options.direction);
    SurfaceAxis beta = add_axis("beta", 2, options.beta, options.beta_points, options.direction);
    plot_ = {"plane",
             "loss over a plane of weight space",
             {std::move(beta), std::move(alpha)},
             terrain.score_columns(),
             {},
             {{"length_alpha", frame_.length(0)},
              {"length_beta", frame_.length(1)},
              {"cosine", frame_.cosine(0, 1)}}};
  }
  SurfacePlot plot() const override { return plot_; }
  CellState measure(int64_t cell, double* values) override {
    const std::vector<double> at = plot_.coordinates(cell);
    return terrain_.measure(frame_.at({at[1], at[0]}), values);
  }
  void conclude(SurfaceRecord& record) override {
    SurfacePlot points{"points",
                       "the checkpoints in the plane",
                       {{"checkpoint", "1", "checkpoint", "landscape-checkpoint", {}, {}}},
                       {{"beta", "1", "beta", "landscape-coordinate", {}},
                        {"alpha", "1", "alpha", "landscape-coordinate", {}}},
                       {},
                       {}};
    for (size_t i = 0; i < terrain_.count(); ++i) {
      points.axes[0].values.push_back(static_cast<double>(i));
      points.axes[0].labels.push_back(terrain_.label(i));
      points.columns[0].values.push_back(i == 2 ? 1 : 0);
      points.columns[1].values.push_back(i == 1 ? 1 : 0);
    }
    record.plots.push_back(std::move(points));
  }

 private:
  // Towards checkpoint number `target` where there is one, else random.
  SurfaceAxis add_axis(const std::string& name, size_t target, const std::vector<double>& range,
                       int64_t points, const DirectionOptions& direction) {
    const bool to_checkpoint = target < terrain_.count();
    if (to_checkpoint)
      frame_.add_point(terrain_.state(target));
    else
      frame_.add_direction(terrain_.direction(direction, target - 1));
    const std::vector<double> held = to_checkpoint ? std::vector<double>{0, 1} : std::vector<double>{0};
    return alpha_axis(name, to_checkpoint, direction.norm,
                      axis_values("plane." + name, range, to_checkpoint ? kBetween : kAround, points, held));
  }

  Terrain& terrain_;
  AffineFrame frame_;
  SurfacePlot plot_;
};

/// L(w_1 + alpha (w_2 - w_1)) where there are two checkpoints; else L(w + alpha d_k) for independent random
/// directions k, and the band of them (landscape/direction_band.h).
std::unique_ptr<LandscapeTask> make_line(Terrain& terrain, const LineOptions& options) {
  if (terrain.count() == 2) return std::make_unique<Between>(terrain, options);
  return std::make_unique<Along>(terrain, options);
}

/// L(w_1 + alpha d_1 + beta d_2): an axis leads to the second and to the third checkpoint, as far as there
/// are any, and along random directions else.
std::unique_ptr<LandscapeTask> make_plane(Terrain& terrain, const PlaneOptions& options) {
  return std::make_unique<Plane>(terrain, options);
}

}  // namespace

LandscapeKind line_landscape() {
  return landscape_kind<LineOptions, make_line>({
      .name = "line",
      .help = "loss on the line from one checkpoint to another, or along random directions, with a band",
      .least = 1,
      .most = 2,
  });
}

LandscapeKind plane_landscape() {
  return landscape_kind<PlaneOptions, make_plane>({
      .name = "plane",
      .help = "loss over two directions: random ones, or those to further checkpoints",
      .least = 1,
      .most = 3,
  });
}

}  // namespace basin
