// defines: the kind "radial" of `basin landscape`.
#include "landscape/affine_frame.h"
#include "landscape/directions.h"
#include "landscape/radial_profile.h"
#include "runs/surfaces/registry.h"

namespace basin {
namespace {

constexpr double kFirstStep = 0.01;  // in norms of the weights

struct RadialOptions {
  int64_t directions = 20;
  std::vector<double> deltas = {0.01, 0.1, 1};
  double most = 10;
  double tolerance = 0.01;
  DirectionOptions direction{"unit", "none"};
};

void bind_options(OptionTable& table, RadialOptions& options) {
  table.add("directions", options.directions, at_least(2), "random directions");
  table.add("deltas", options.deltas, distinct(greater_than(0)),
            "rises of the training loss whose radius is measured");
  table.add("most", options.most, greater_than(kFirstStep),
            "largest distance searched, as a multiple of the weights' norm");
  table.add("tolerance", options.tolerance, between(1e-6, 0.5),
            "relative width of the last bracket around a radius");
  bind_options(table, options.direction);
}

class RadialTask final : public LandscapeTask {
 public:
  RadialTask(Terrain& terrain, const RadialOptions& options) : terrain_(terrain), options_(options) {
    std::sort(options_.deltas.begin(), options_.deltas.end());
    std::vector<double> numbers(static_cast<size_t>(options.directions));
    std::iota(numbers.begin(), numbers.end(), 0.0);
    const std::string units = terrain.loss_units();
    delta_ = {"delta", units, "rise of the training loss", "landscape-rise", options_.deltas, {}};
    plot_ = {
        "radial",
        "distance at which the training loss has risen by delta",
        {{"direction", "1", "random direction", "landscape-direction", numbers, {}}, delta_},
        {{"radius", "|d|", "distance at which the loss has risen by delta", "landscape-radius", {}},
         {"radius_error", "|d|", "half the last bracket of the search", "landscape-radius", {}},
         {"reached", "1", "1 where it is, 0 where the loss hasn't risen so far", "landscape-radius", {}}},
        {},
        {}};
  }

  SurfacePlot plot() const override { return plot_; }

  CellState measure(int64_t cell, double* values) override {
    const std::vector<int64_t> at = plot_.position(cell);
    if (!std::isfinite(base())) {
      std::fill_n(values, 3, NAN);
      return CellState::nonfinite;
    }
    Line& line = along(at[0]);
    const double scale = weight_norm() / line.frame.length(0);
    const Radius radius = radius_of_rise(
        line.ray, base() + options_.deltas[static_cast<size_t>(at[1])],
        {.first = kFirstStep * scale, .most = options_.most * scale, .tolerance = options_.tolerance});
    values[0] = radius.value;
    values[1] = radius.error;
    values[2] = radius.reached ? 1 : 0;
    return CellState::ok;
  }

  void conclude(SurfaceRecord& record) override {
    const SurfacePlot& rays = record.plots[0];
    const bool uniform = options_.direction.norm == "unit";
    SurfacePlot profile{"profile", "mean logarithm of the distance", {delta_}, {}, {}, {}};
    const auto add = [&](const char* name, const char* units, const char* what) {
      profile.columns.push_back({name, units, what, "landscape-radial-profile", {}});
    };
    add("mean_log_radius", "log |d|",
        "mean log radius over directions; a lower bound where some haven't risen");
    add("mean_log_radius_error", "log |d|", "its standard error over directions");
    add("reached", "1", "directions along which the loss has risen");
    if (uniform) add("log_mean_power", "log |d|", "log of the mean n-th power of the radius, over n");
    if (uniform) add("effective_directions", "1", "directions that carry that mean");
    std::vector<std::string> statuses;
    for (size_t i = 0; i < options_.deltas.size(); ++i) {
      const LogVolume volume = volume_of(rays, i);
      const double values[] = {volume.mean_log_radius, volume.standard_error,
                               static_cast<double>(volume.reached), volume.log_mean_power,
                               volume.effective_directions};
      for (size_t column = 0; column < profile.columns.size(); ++column)
        profile.columns[column].values.push_back(values[column]);
      statuses.emplace_back(to_string(volume.status));
    }
    profile.attributes = {{"status", statuses}, {"weights_moved", weights_moved()}, {"base_loss", base()}};
    record.plots.push_back(std::move(profile));
  }

 private:
  at::Tensor direction(int64_t index) const {
    return terrain_.direction(options_.direction, static_cast<uint64_t>(index));
  }

  struct Line {
    Line(RadialTask& task, int64_t of_direction)
        : direction(of_direction),
          frame(task.terrain_.origin(), task.terrain_.parameters().size()),
          ray([this, &task](double r) { return task.terrain_.loss(frame.at({r})); }) {
      frame.add_direction(task.direction(of_direction));
    }
    int64_t direction;
    AffineFrame frame;
    Ray ray;
  };

  /// The last one is kept: its ray knows the losses seen.
  Line& along(int64_t direction) {
    if (!line_ || line_->direction != direction) line_ = std::make_unique<Line>(*this, direction);
    return *line_;
  }

  /// L(w), with its statistics as at all other points.
  double base() {
    if (!base_) base_ = terrain_.loss(terrain_.origin());
    return *base_;
  }

  double weight_norm() const { return terrain_.weights().norm().item<double>(); }
  int64_t weights_moved() const { return direction(0).count_nonzero().item<int64_t>(); }

  LogVolume volume_of(const SurfacePlot& rays, size_t delta) {
    std::vector<double> radii;
    int64_t failed = 0;
    for (size_t cell = delta; cell < rays.columns[0].values.size(); cell += options_.deltas.size()) {
      if (rays.state[cell] == static_cast<uint8_t>(CellState::failed))
        ++failed;
      else
        radii.push_back(rays.columns[0].values[cell]);
    }
    const double farthest = options_.most * weight_norm() / direction(0).norm().item<double>();
    return log_volume(radii, failed, farthest, static_cast<double>(weights_moved()));
  }

  Terrain& terrain_;
  RadialOptions options_;
  SurfaceAxis delta_;
  SurfacePlot plot_;
  std::unique_ptr<Line> line_;
  std::optional<double> base_;
};

/// How far from a checkpoint along random directions d the training loss has risen by delta: r(d) with L(w +
/// r d) = L(w) + delta, over {direction, delta}; and over {delta} what it says about the region's volume
/// (landscape/radial_profile.h; mean_log_power and effective_directions for direction.norm = "unit" alone,
/// whose directions are uniform on the sphere). r counts in |d|: with "unit" it is the distance, with
/// "filter" 1 is a direction in which each filter moves by its own length, which rescaled layers don't
/// change. A direction that hasn't risen within most |w| / |d| has the radius NaN and reached = 0.
///
/// Cost: about 10 losses of the training examples per direction and delta, and with landscape.bn = "reset" as
/// many estimates of the statistics where there are any.
std::unique_ptr<LandscapeTask> make_radial(Terrain& terrain, const RadialOptions& options) {
  return std::make_unique<RadialTask>(terrain, options);
}

}  // namespace

LandscapeKind radial_landscape() {
  return landscape_kind<RadialOptions, make_radial>({
      .name = "radial",
      .help = "how far from a checkpoint the loss has risen, along random directions",
      .least = 1,
      .most = 1,
  });
}

}  // namespace basin
