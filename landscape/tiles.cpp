#include "landscape/tiles.h"

#include <chrono>
#include <filesystem>
#include <thread>

#include "core/error.h"
#include "core/files.h"
#include "core/hash.h"
#include "core/interrupt.h"
#include "io/schema.h"

namespace basin {
namespace {

namespace fs = std::filesystem;

constexpr auto kLookAgain = std::chrono::milliseconds(50);

bool has_failed_cell(const Tile& tile) {
  return std::count(tile.state.begin(), tile.state.end(), static_cast<uint8_t>(CellState::failed)) > 0;
}

CellState measured(const CellFunction& measure, int64_t cell, double* values, int64_t columns) {
  try {
    return measure(cell, values);
  } catch (const Error&) {  // Interrupted, or a file or an option at fault: not this cell's
    throw;
  } catch (const std::exception& error) {
    std::fill(values, values + columns, std::numeric_limits<double>::quiet_NaN());
    const std::string text = error.what();
    fmt::print(stderr, "cell {} failed: {}\n", cell, text.substr(0, text.find('\n')));
    return CellState::failed;
  }
}

Tile computed(const TileFolder& folder, int64_t tile, const CellFunction& measure,
              const std::function<void()>& cell_done) {
  const int64_t columns = folder.layout().columns, count = folder.cells_in(tile);
  Tile cells{std::vector<uint8_t>(static_cast<size_t>(count)),
             std::vector<double>(static_cast<size_t>(count * columns))};
  for (int64_t i = 0; i < count; ++i) {
    throw_if_interrupted();
    const CellState state =
        measured(measure, folder.first_cell(tile) + i, cells.values.data() + i * columns, columns);
    cells.state[static_cast<size_t>(i)] = static_cast<uint8_t>(state);
    cell_done();
  }
  return cells;
}

}  // namespace

TileFolder::TileFolder(std::string path, const std::string& recipe, const Layout& layout)
    : path_(std::move(path)), key_(sha256_hex(recipe)), layout_(layout) {
  make_folders(path_);
  const FileLock lock = FileLock::wait(path_ + "/lock");
  user_.emplace(FileLock::share(path_ + "/users"));
  const std::string known = path_ + "/recipe.toml";
  if (!fs::exists(known)) {
    write_file_atomically(known, recipe);
  } else if (const std::string stored = read_file(known); stored != recipe) {
    throw ConfigError(fmt::format("{}: tiles of another surface: {} (--force measures everything again)",
                                  path_, first_difference(stored, recipe)));
  }
}

std::string TileFolder::tile_path(int64_t tile) const { return fmt::format("{}/{:06d}.h5", path_, tile); }

bool TileFolder::has(int64_t tile) const { return fs::exists(tile_path(tile)); }

int64_t TileFolder::cells_done() const {
  int64_t done = 0;
  for (int64_t i = 0; i < tiles(); ++i) done += has(i) ? cells_in(i) : 0;
  return done;
}

std::optional<FileLock> TileFolder::claim(int64_t tile) const {
  return FileLock::attempt(fmt::format("{}/{:06d}.lock", path_, tile));
}

void TileFolder::write(int64_t tile, const Tile& cells) const {
  h5::File file = create_schema_file(tile_path(tile), kTileSchema);
  file.set_attribute("recipe_hash", key_);
  file.set_attribute("tile", tile);
  file.write("state", cells.state);
  file.write("values", at::kDouble, {cells_in(tile), layout_.columns}, cells.values.data());
  file.save();
}

Tile TileFolder::read(int64_t tile) const {
  const std::string path = tile_path(tile);
  const h5::File file = open_schema_file(path, kTileSchema);
  if (file.attribute_as<std::string>("recipe_hash") != key_ || file.attribute_as<int64_t>("tile") != tile)
    throw IoError(path + ": a tile of another surface; remove it to have it measured again");
  Tile cells{file.dataset("state").read<uint8_t>(), file.dataset("values").read<double>()};
  const auto count = static_cast<size_t>(cells_in(tile));
  if (cells.state.size() != count || cells.values.size() != count * static_cast<size_t>(layout_.columns))
    throw IoError(path + ": a tile of another grid; remove it to have it measured again");
  if (!std::all_of(cells.state.begin(), cells.state.end(), is_cell_state))
    throw IoError(path + ": state holds a number that is none (0 to 3); remove it to have it measured again");
  return cells;
}

void TileFolder::drop_failed() const {
  for (int64_t i = 0; i < tiles(); ++i) {
    if (has(i) && has_failed_cell(read(i))) fs::remove(tile_path(i));
  }
}

Tile TileFolder::read_all() const {
  Tile all;
  for (int64_t i = 0; i < tiles(); ++i) {
    const auto count = static_cast<size_t>(cells_in(i));
    Tile cells{std::vector<uint8_t>(count, static_cast<uint8_t>(CellState::todo)),
               std::vector<double>(count * static_cast<size_t>(layout_.columns),
                                   std::numeric_limits<double>::quiet_NaN())};
    if (has(i)) cells = read(i);
    all.state.insert(all.state.end(), cells.state.begin(), cells.state.end());
    all.values.insert(all.values.end(), cells.values.begin(), cells.values.end());
  }
  return all;
}

void TileFolder::remove() {
  user_.reset();
  discard(path_);
}

bool TileFolder::discard(const std::string& path) {
  if (!fs::exists(path)) return true;
  const std::optional<FileLock> last = FileLock::attempt(path + "/users");
  std::error_code ignored;  // what is left is measured anew, or refused as another recipe's
  if (last) fs::remove_all(path, ignored);
  return last.has_value();
}

void compute_tiles(const TileFolder& folder, const CellFunction& measure, bool wait,
                   const std::function<void(int64_t)>& report) {
  int64_t done_here = 0;
  while (true) {
    bool missing = false, took = false;
    for (int64_t tile = 0; tile < folder.tiles(); ++tile) {
      if (folder.has(tile)) continue;
      const std::optional<FileLock> claim = folder.claim(tile);
      missing = missing || !claim;
      if (!claim || folder.has(tile)) continue;  // finished between the two looks
      folder.write(tile, computed(folder, tile, measure, [&] { report(++done_here); }));
      took = true;
    }
    if (!missing || !wait) return;
    throw_if_interrupted();
    if (!took) std::this_thread::sleep_for(kLookAgain);
  }
}

}  // namespace basin
