// defines: the kind "barrier" of `basin landscape`.
#include "core/error.h"
#include "landscape/unit_matching.h"
#include "runs/surfaces/path.h"
#include "runs/surfaces/registry.h"

namespace basin {
namespace {

struct BarrierOptions {
  int64_t points = 25;
  std::vector<std::string> statistics = {"reset", "interpolate"};
  std::vector<std::string> matching = {"none", "weights"};
};

void bind_options(OptionTable& table, BarrierOptions& options) {
  table.add("points", options.points, at_least(3),
            "points on the line, including both checkpoints and the middle; 25 or more are usual");
  table.add(
      "statistics", options.statistics, distinct(one_of({"reset", "interpolate"})),
      "running statistics along the line: estimated anew at each point, or interpolated like the weights");
  table.add("matching", options.matching, distinct(one_of({"none", "weights"})),
            "second network: as it is, or with its units permuted to match the first's");
}

class BarrierTask final : public PathTask {
 public:
  BarrierTask(LandscapeSubject& subject, const BarrierOptions& options)
      : PathTask(subject, "barrier", "the straight line between two checkpoints", options.points) {
    for (const std::string& matching : options.matching) {
      if (matching == "weights" && subject.model().unit_groups().empty()) continue;
      const at::Tensor end = matching == "weights" ? matched_end() : subject.state(1);
      for (const std::string& statistics : options.statistics) add(matching, statistics, end);
    }
    if (plot().axes[0].values.empty()) {
      throw ConfigError(
          fmt::format("barrier.matching = {}, barrier.statistics = {}: this network has neither units that "
                      "can be permuted nor batch statistics to interpolate, so no line is left to measure",
                      to_toml(options.matching), to_toml(options.statistics)));
    }
  }

  void conclude(SurfaceRecord& record) override {
    PathTask::conclude(record);
    if (!matching_) return;
    SurfacePlot& points = record.plots[0];
    points.attributes.emplace_back("matching_distance_before", matching_->distance_before);
    points.attributes.emplace_back("matching_distance_after", matching_->distance_after);
    points.attributes.emplace_back("matching_sweeps", matching_->sweeps);
    points.attributes.emplace_back("matching_converged", matching_->converged);
    for (size_t g = 0; g < matching_->groups.size(); ++g)
      record.vectors.emplace_back("order_" + matching_->groups[g], matching_->order[g]);
  }

 private:
  void add(const std::string& matching, const std::string& statistics, const at::Tensor& end) {
    if (statistics == "interpolate" && !subject().model().has_batch_statistics()) return;
    const std::string prefix = matching == "weights" ? "matched" : "as-is";
    const std::string label = subject().model().has_batch_statistics() ? prefix + "-" + statistics : prefix;
    add_path({label, statistics_mode(statistics), straight_line(end)});
  }

  const at::Tensor& matched_end() {
    for (size_t i = 0; i < subject().count(); ++i) {
      if (!at::isfinite(subject().state(i)).all().item<bool>())
        throw IoError(subject().file(i) +
                      ": weights that are not finite can't be matched; barrier.matching = [\"none\"]");
    }
    matching_ = match_units(subject().model(), subject().state(0), subject().state(1),
                            subject().seed("unit-matching"));
    return matching_->state;
  }

  std::optional<UnitMatching> matching_;
};

/// Linear mode connectivity of two checkpoints: the straight line w_1 + t (w_2 - w_1), in each way of taking
/// it: with running statistics estimated anew at each point or interpolated like the weights, to the second
/// checkpoint as it is or with its units in the order nearest to the first's (landscape/unit_matching.h).
/// Paths are named <matching>-<statistics>; networks without batch statistics have none of "interpolate",
/// those without free units none of "weights". Heights, places and errors: plot "summary"
/// (runs/surfaces/path.h). landscape.bn is not looked at.
std::unique_ptr<LandscapeTask> make_barrier(LandscapeSubject& subject, const BarrierOptions& options) {
  return std::make_unique<BarrierTask>(subject, options);
}

}  // namespace

LandscapeKind barrier_landscape() {
  return landscape_kind<BarrierOptions, make_barrier>({
      .name = "barrier",
      .help = "how far the loss rises on the straight line between two checkpoints, as they are and with "
              "matched units",
      .least = 2,
      .most = 2,
  });
}

}  // namespace basin
