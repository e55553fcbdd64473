#include "sweep/collect/collect.h"

#include <filesystem>

#include "core/files.h"
#include "sweep/collect/file.h"
#include "sweep/collect/table.h"

namespace basin {

void collect(const std::string& sweep_folder) {
  const std::filesystem::path folder = sweep_folder;
  const std::vector<SweepRow> rows = read_sweep_rows(sweep_folder);
  const std::filesystem::path study = folder / "study.toml";
  write_sweep_file((folder / "sweep.h5").string(),
                   std::filesystem::exists(study) ? read_file(study.string()) : "", rows);
  write_file_atomically((folder / "table.md").string(), table_markdown(rows));
}

}  // namespace basin
