#include "runs/surfaces/path.h"

#include "landscape/affine_frame.h"
#include "landscape/connectivity.h"

namespace basin {
namespace {

struct SummaryColumn {
  const char *name, *long_name;
};

// In the order of PathTask::row().
constexpr SummaryColumn kSummary[] = {
    {"barrier", "height of the largest point over the chord of the ends, at least 0"},
    {"excess", "largest excess of an inner point over the chord of the ends"},
    {"excess_error", "its standard error over examples, paired"},
    {"excess_t", "where it is"},
    {"middle_excess", "excess at t = 1/2"},
    {"middle_excess_error", "its standard error over examples, paired"},
    {"highest", "largest value"},
    {"highest_t", "where it is"},
    {"mean_along", "mean over the path's length"},
};

std::vector<double> numbers(size_t count) {
  std::vector<double> values(count);
  std::iota(values.begin(), values.end(), 0.0);
  return values;
}

const SurfaceColumn& column_named(const SurfacePlot& plot, const std::string& name) {
  return *std::find_if(plot.columns.begin(), plot.columns.end(),
                       [&](const SurfaceColumn& column) { return column.name == name; });
}

}  // namespace

PathTask::PathTask(LandscapeSubject& subject, std::string name, std::string long_name, int64_t points)
    : subject_(subject),
      name_(std::move(name)),
      long_name_(std::move(long_name)),
      t_(grid_values(0, 1, points, {0, 0.5, 1})) {}

std::function<at::Tensor(double)> PathTask::straight_line(const at::Tensor& end) const {
  const auto line = std::make_shared<AffineFrame>(subject_.state(0), subject_.states().parameter_size());
  line->add_point(end);
  return [line](double t) { return line->at({t}); };
}

SurfacePlot PathTask::plot() const {
  std::vector<std::string> labels;
  for (const Path& path : paths_) labels.push_back(path.label);
  return {name_,
          long_name_,
          {{"path", "1", "way from the first checkpoint to the second", "landscape-path",
            numbers(paths_.size()), labels},
           {"t", "1", "place on the path", "landscape-coordinate", t_, {}}},
          subject_.score_columns(),
          {},
          {}};
}

CellState PathTask::measure(int64_t cell, double* values) {
  const std::vector<int64_t> at = plot().position(cell);
  const Path& path = paths_[static_cast<size_t>(at[0])];
  subject_.evaluator().set_statistics(path.statistics);
  return subject_.measure(path.state(t_[static_cast<size_t>(at[1])]), values);
}

std::vector<PathTask::Quantity> PathTask::quantities() const {
  std::vector<Quantity> all{{"train_loss", "train_loss", false, false},
                            {"train_error", "train_acc", false, true}};
  if (!subject_.evaluator().has_test()) return all;
  all.push_back({"test_loss", "test_loss", true, false});
  all.push_back({"test_error", "test_acc", true, true});
  return all;
}

SurfacePlot PathTask::empty_summary() const {
  const SurfacePlot points = plot();
  SurfaceAxis quantity{"quantity", "1", "what is read off", "landscape-quantity", {}, {}};
  for (const Quantity& one : quantities()) quantity.labels.push_back(one.name);
  quantity.values = numbers(quantity.labels.size());
  SurfacePlot summary{"summary", "what is read off each path", {points.axes[0], quantity}, {}, {}, {}};
  for (const SummaryColumn& column : kSummary)
    summary.columns.push_back(
        {column.name, "that of the quantity", column.long_name, "landscape-path-summary", {}});
  return summary;
}

void PathTask::conclude(SurfaceRecord& record) {
  SurfacePlot summary = empty_summary();
  std::vector<double> lengths, distances;
  for (size_t path = 0; path < paths_.size(); ++path) {
    const std::vector<double> lengths_of_steps = steps(paths_[path]);
    lengths.push_back(std::accumulate(lengths_of_steps.begin(), lengths_of_steps.end(), 0.0));
    const at::Tensor way = paths_[path].state(1) - paths_[path].state(0);
    distances.push_back(way.narrow(0, 0, subject_.states().parameter_size()).norm().item<double>());
    for (const Quantity& quantity : quantities()) {
      const Row found = row(record.plots[0], path, quantity);
      for (size_t i = 0; i < found.values.size(); ++i) summary.columns[i].values.push_back(found.values[i]);
      summary.state.push_back(static_cast<uint8_t>(found.state));
    }
  }
  summary.attributes = {{"length", lengths}, {"distance_of_ends", distances}};
  record.plots.push_back(std::move(summary));
}

PathTask::Row PathTask::row(const SurfacePlot& points, size_t path, const Quantity& quantity) {
  const auto from = static_cast<std::ptrdiff_t>(path * t_.size()),
             to = from + static_cast<std::ptrdiff_t>(t_.size());
  const std::vector<double>& column = column_named(points, quantity.column).values;
  std::vector<double> values(column.begin() + from, column.begin() + to);
  if (quantity.is_error)
    for (double& value : values) value = 1 - value;
  const Excess excess = highest_excess(t_, values);
  if (excess.point < 0) {
    const auto failed = static_cast<uint8_t>(CellState::failed);
    const bool has_failed = std::count(points.state.begin() + from, points.state.begin() + to, failed) > 0;
    return {std::vector<double>(std::size(kSummary), NAN),
            has_failed ? CellState::failed : CellState::nonfinite};
  }
  const SampleMean at_highest = excess_at(path, excess.point, quantity);
  const auto half = std::find(t_.begin(), t_.end(), 0.5) - t_.begin();
  const SampleMean at_half = excess_at(path, half, quantity);
  const auto highest = std::max_element(values.begin(), values.end());
  return {{std::max(0.0, excess.value), excess.value, at_highest.standard_error,
           t_[static_cast<size_t>(excess.point)], at_half.value, at_half.standard_error, *highest,
           t_[static_cast<size_t>(highest - values.begin())], mean_along(values, steps(paths_[path]))},
          CellState::ok};
}

SampleMean PathTask::excess_at(size_t path, int64_t point, const Quantity& quantity) {
  const auto end = static_cast<int64_t>(t_.size()) - 1;
  return excess_over_examples(t_[static_cast<size_t>(point)], of_examples(path, point, quantity),
                              of_examples(path, 0, quantity), of_examples(path, end, quantity));
}

at::Tensor PathTask::of_examples(size_t path, int64_t point, const Quantity& quantity) {
  auto known = examples_.find({path, point});
  if (known == examples_.end()) {
    subject_.evaluator().set_statistics(paths_[path].statistics);
    const at::Tensor state = paths_[path].state(t_[static_cast<size_t>(point)]);
    known = examples_.emplace(std::pair(path, point), subject_.evaluator().at(state, /*keep_examples=*/true))
                .first;
  }
  const SetScore& set = quantity.of_test ? known->second.test : known->second.train;
  return quantity.is_error ? 1 - set.correct : set.losses;
}

// |w_i - w_{i-1}|, of the parameters.
std::vector<double> PathTask::steps(const Path& path) const {
  const auto weights = [&](double t) {
    return path.state(t).narrow(0, 0, subject_.states().parameter_size());
  };
  std::vector<double> lengths;
  at::Tensor before = weights(t_.front());
  for (size_t i = 1; i < t_.size(); ++i) {
    const at::Tensor here = weights(t_[i]);
    lengths.push_back((here - before).norm().item<double>());
    before = here;
  }
  return lengths;
}

}  // namespace basin
