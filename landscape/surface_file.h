// defines: SurfaceRecord, what `basin landscape` writes to a file; write_surface_file(), read_surface_file().
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/parameter.h"
#include "io/h5.h"

namespace basin {

/// How a cell of a grid stands. Neither a value nor a NaN says it: a cell that was measured and isn't finite
/// is done, and is not measured again.
enum class CellState : uint8_t { todo = 0, ok = 1, nonfinite = 2, failed = 3 };
/// Whether a number from a file is one of them.
inline bool is_cell_state(uint8_t number) { return number <= static_cast<uint8_t>(CellState::failed); }

/// One axis of a plot, a dimension scale in the file. `labels`, where there are any, name its values and
/// stand next to them as the text dataset <name>_label.
struct SurfaceAxis {
  std::string name, units, long_name, definition;
  std::vector<double> values;
  std::vector<std::string> labels;
};

/// One value per cell, row-major over the plot's axes, the last of them fastest. No values: NaN everywhere.
struct SurfaceColumn {
  std::string name, units, long_name, definition;
  std::vector<double> values;
};

/// One NeXus plot (NXdata): h5web draws the first column over the axes without code.
struct SurfacePlot {
  std::string name, long_name;
  std::vector<SurfaceAxis> axes;  // slowest first: {beta, alpha} holds loss[beta, alpha]
  std::vector<SurfaceColumn> columns;
  std::vector<uint8_t> state;  // CellState of each cell; empty: not asked
  h5::Attributes attributes;

  int64_t cells() const;
  /// Index of a cell along each axis.
  std::vector<int64_t> position(int64_t cell) const;
  /// Coordinates of a cell, in the order of the axes.
  std::vector<double> coordinates(int64_t cell) const;
};

/// The status of a whole file: partial while a cell is todo, failed where a cell failed.
enum class SurfaceStatus { ok, partial, failed };
const char* to_string(SurfaceStatus status);

/// HDF5, schema basin/surface: /recipe (attributes: all that makes the numbers), a group per plot (the first is
/// what a viewer draws), /vectors/<name> (flat tensors, e.g. what was trained), /provenance. Root attributes:
/// kind, recipe_hash, status.
struct SurfaceRecord {
  std::string kind;
  h5::Attributes recipe;
  std::vector<SurfacePlot> plots;
  NamedTensors vectors;
  std::vector<std::pair<std::string, std::string>> provenance;

  SurfaceStatus status() const;  // from the states of all plots
};

/// "key = value" a line; recipe_hash is the SHA-256 of it.
std::string recipe_text(const h5::Attributes& recipe);
/// The first line that only one of two recipe_text()s has, for errors: "seed = 1 there, seed = 2 asked for".
std::string first_difference(const std::string& there, const std::string& asked);

void write_surface_file(const std::string& path, const SurfaceRecord& record);
SurfaceRecord read_surface_file(const std::string& path);

}  // namespace basin
