// defines: TileFolder, a computation's cells on disk while it goes on; compute_tiles().
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/file_lock.h"
#include "landscape/surface_file.h"

namespace basin {

struct Tile {
  std::vector<uint8_t> state;  // CellState of each of its cells
  std::vector<double> values;  // [cells of the tile, columns]
};

/// A folder of finished tiles, one small file each (temporary file and rename), numbers kept bit for bit. Any
/// number of processes may work on one folder, on several machines too: each tile is claimed by a lock.
///
/// The folder belongs to one recipe, given in its recipe.toml; each tile carries the hash. Another recipe is
/// refused in a line that says what differs, never mixed in.
class TileFolder {
 public:
  struct Layout {
    int64_t cells, tile, columns;  // tile: cells in one, the last one may have fewer
  };
  /// Makes the folder, or goes on with it. ConfigError where it is of another recipe.
  TileFolder(std::string path, const std::string& recipe, const Layout& layout);

  const std::string& path() const { return path_; }
  const Layout& layout() const { return layout_; }
  int64_t tiles() const { return (layout_.cells + layout_.tile - 1) / layout_.tile; }
  int64_t first_cell(int64_t tile) const { return tile * layout_.tile; }
  int64_t cells_in(int64_t tile) const { return std::min(layout_.tile, layout_.cells - first_cell(tile)); }

  bool has(int64_t tile) const;
  /// Cells in finished tiles.
  int64_t cells_done() const;
  std::optional<FileLock> claim(int64_t tile) const;
  void write(int64_t tile, const Tile& cells) const;
  Tile read(int64_t tile) const;  // IoError where it is damaged or of another recipe
  /// Tiles with a failed cell are forgotten, to be measured again.
  void drop_failed() const;
  /// All finished cells, the others todo and NaN; values [cells, columns].
  Tile read_all() const;
  /// Unless another process is still at work in it. The object is of no use after that.
  void remove();
  /// Removes a folder of whatever recipe, where there is one; false where a process is at work in it.
  static bool discard(const std::string& path);

 private:
  std::string tile_path(int64_t tile) const;

  std::string path_, key_;
  Layout layout_;
  std::optional<FileLock> user_;
};

/// Fills the columns of one cell and says how it went. What it throws but Error makes the cell `failed`.
using CellFunction = std::function<CellState(int64_t cell, double* values)>;

/// Computes tiles that nobody else has or is at, and returns when none is left to take (`wait`: when all are
/// there). `report` is called with every cell done here. Interrupted is thrown between cells; the tile begun
/// is lost.
void compute_tiles(const TileFolder& folder, const CellFunction& measure, bool wait,
                   const std::function<void(int64_t cells_done_here)>& report);

}  // namespace basin
