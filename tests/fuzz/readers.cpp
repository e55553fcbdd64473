#include "tests/fuzz/readers.h"

#include <functional>
#include <stdexcept>

#include "core/error.h"
#include "data/readers.h"
#include "forecast/seeds.h"
#include "hessian/outside/hello.h"
#include "io/checkpoint.h"
#include "io/journal.h"
#include "io/probe_file.h"
#include "io/run_file.h"
#include "io/schema.h"
#include "io/status_file.h"
#include "landscape/surface_file.h"
#include "landscape/tiles.h"
#include "study/contrast_cells.h"
#include "study/study.h"
#include "study/tuning_reader.h"
#include "sweep/collect/registration_file.h"
#include "sweep/pilot.h"
#include "tests/support/tiny_files.h"

namespace basin::fuzz {
namespace {

/// A file of the user's takes the place of the set's first one.
void read_first_file(const Manifest& manifest, const testing::Files& files, const std::string& path) {
  std::vector<SourceFile> sources;
  for (size_t i = 0; i < manifest.files.size(); ++i)
    sources.push_back({files[i].first, files[i].first, i == 0 ? testing::slurp(path) : files[i].second});
  parse_set(manifest, sources);
}

/// One mutant in 16 is expanded as well, which takes ten times as long as reading it.
void read_study_file(const std::string& path) {
  const std::string text = testing::slurp(path);
  const Study study = parse_study(text, "study.toml", {});
  if (std::hash<std::string>{}(text) % 16 != 0) return;
  const std::vector<Cell> cells = expand(study);
  cells_of_contrasts(study, cells);
}

/// The first tile of a folder with tiles of three cells and two columns.
void read_tile_file(const std::string& path) {
  const TileFolder tiles(path + ".tiles", "corpus = \"tile\"\n", {6, 3, 2});
  testing::spill(tiles.path() + "/000000.h5", testing::slurp(path));
  tiles.read(0);
}

/// Files that Python alone takes apart.
Reader hdf5_file(const std::string& kind, const std::string& schema) {
  return {kind, [schema](const std::string& path) { open_schema_file(path, schema); }};
}

}  // namespace

const std::vector<Reader>& readers() {
  static const std::vector<Reader> all = {
      {"run", [](const std::string& path) { read_run_file(path); }},
      {"checkpoint", [](const std::string& path) { read_checkpoint(path); }},
      {"probe", [](const std::string& path) { read_probe_file(path); }},
      {"surface", [](const std::string& path) { read_surface_file(path); }},
      {"tile", read_tile_file},
      hdf5_file("sweep", kSweepSchema),
      hdf5_file("tune", kTuneSchema),
      hdf5_file("scaling", kScalingSchema),
      hdf5_file("audit", kAuditSchema),
      {"verdicts", [](const std::string& path) { Pilot{path}; }},
      {"selection", [](const std::string& path) { read_selection(path); }},
      {"prediction", [](const std::string& path) { seeds_of_prediction(path, 3); }},
      {"journal", [](const std::string& path) { replay_journal(path); }},
      {"status", [](const std::string& path) { read_status(path); }},
      {"hello", [](const std::string& path) { parse_hello(testing::slurp(path)); }},
      {"study", read_study_file},
      {"registration",
       [](const std::string& path) { parse_registration(testing::slurp(path), "registration.toml"); }},
      {"cifar",
       [](const std::string& path) {
         read_first_file(testing::tiny_cifar(), testing::tiny_cifar_files(), path);
       }},
      {"idx",
       [](const std::string& path) {
         read_first_file(testing::tiny_idx(), testing::tiny_idx_files(false), path);
       }},
  };
  return all;
}

const Reader& reader_of(const std::string& kind) {
  for (const Reader& reader : readers())
    if (reader.kind == kind) return reader;
  throw std::invalid_argument("no reader is called " + kind);
}

std::string said_of(const Reader& reader, std::string_view bytes, const std::string& path) {
  testing::spill(path, std::string(bytes));
  try {
    reader.read(path);
  } catch (const Error& error) {
    const std::string line = error.what();
    // "std::" is a library's message, unless the file says so itself and is quoted.
    const bool foreign =
        line.find("std::") != std::string::npos && bytes.find("std::") == std::string_view::npos;
    if (line.empty() || line.find('\n') != std::string::npos || foreign)
      throw std::logic_error(reader.kind + " is refused, but not in one line of ours: " + line);
    return line;
  }
  return "";
}

}  // namespace basin::fuzz
