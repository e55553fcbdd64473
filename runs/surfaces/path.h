// defines: PathTask, what the kinds of landscape that join two checkpoints by paths share.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/math/statistics.h"
#include "runs/surfaces/task.h"

namespace basin {

/// A grid over {path, t}: several ways from the first checkpoint (t = 0) to the second (t = 1), measured at
/// the same t, 1/2 among them. With it the plot "summary" over {path, quantity}, quantity: loss and error
/// (1 - accuracy) of each set:
///   highest, highest_t    of all points
///   mean_along            over the path's length, landscape/connectivity.h
///   barrier               max(0, excess)
///   excess, excess_error, excess_t       largest excess of an inner point over the chord of the ends, its standard
///                                        error over examples, paired, and where it is
///   middle_excess, middle_excess_error   the same at t = 1/2, which no maximum has chosen, so without its bias
/// NaN throughout, and the state nonfinite, where a point of the path isn't finite.
///
/// Cost: PointEvaluator's of one point per cell; and up to seven points more per path, for the examples' own losses.
class PathTask : public LandscapeTask {
 public:
  SurfacePlot plot() const override;
  int64_t tile() const override { return 1; }
  CellState measure(int64_t cell, double* values) override;
  void conclude(SurfaceRecord& record) override;

 protected:
  struct Path {
    std::string label;
    StatisticsMode statistics;
    std::function<at::Tensor(double t)> state;
  };
  PathTask(LandscapeSubject& subject, std::string name, std::string long_name, int64_t points);
  void add_path(Path path) { paths_.push_back(std::move(path)); }
  LandscapeSubject& subject() const { return subject_; }
  /// The first checkpoint's share 1 - t and the second's t, or another state in its place.
  std::function<at::Tensor(double t)> straight_line(const at::Tensor& end) const;

 private:
  struct Quantity {
    std::string name, column;
    bool of_test, is_error;
  };
  /// One row of the summary, in the order of its columns.
  struct Row {
    std::vector<double> values;
    CellState state;
  };
  std::vector<Quantity> quantities() const;
  SurfacePlot empty_summary() const;
  Row row(const SurfacePlot& points, size_t path, const Quantity& quantity);
  SampleMean excess_at(size_t path, int64_t point, const Quantity& quantity);
  at::Tensor of_examples(size_t path, int64_t point, const Quantity& quantity);
  std::vector<double> steps(const Path& path) const;

  LandscapeSubject& subject_;
  std::string name_, long_name_;
  std::vector<double> t_;
  std::vector<Path> paths_;
  std::map<std::pair<size_t, int64_t>, PointScore> examples_;  // by path and point
};

}  // namespace basin
