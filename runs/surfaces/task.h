// defines: LandscapeTask, what a kind of landscape computes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "landscape/surface_file.h"
#include "runs/surfaces/subject.h"

namespace basin {

/// The grid of one kind and how a cell is measured. Cells are computed in tiles, in any order and by any
/// process, so measure() must depend on the cell alone.
class LandscapeTask {
 public:
  virtual ~LandscapeTask() = default;

  /// Axes and columns, without values. Its name is that of the file's first group.
  virtual SurfacePlot plot() const = 0;
  /// What the numbers depend on besides the kind's options and LandscapeSubject::recipe(): further files' hashes.
  virtual h5::Attributes recipe() const { return {}; }
  /// Cells in a tile; a row of the grid as a rule.
  virtual int64_t tile() const { return static_cast<int64_t>(plot().axes.back().values.size()); }
  /// Called once in each process before its first cell, under a lock of `folder`, where files may be left for
  /// the processes after it. For what must be done once: training a curve.
  virtual void prepare(const std::string& /*folder*/) {}
  virtual CellState measure(int64_t cell, double* values) = 0;
  /// When all cells of plots[0] are there (partial: some are todo): adds further plots, attributes, vectors.
  virtual void conclude(SurfaceRecord& /*record*/) {}
};

}  // namespace basin
