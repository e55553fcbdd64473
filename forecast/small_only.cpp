#include "forecast/small_only.h"

#include "core/error.h"
#include "core/toml_file.h"
#include "io/h5.h"
#include "study/study.h"
#include "trainers/batch_plan.h"

namespace basin {
namespace {

namespace fs = std::filesystem;

void require_small(int64_t batch, const std::string& where) {
  if (batch > kLargestSmallBatch)
    throw ConfigError(fmt::format(
        "{}: batch_size = {}: a forecast that would see its own test runs (at most {} are allowed)", where,
        batch, kLargestSmallBatch));
}

void require_small(const OptionValue& batch, const std::string& where) {
  if (const int64_t* size = std::get_if<int64_t>(&batch)) require_small(*size, where);
}

/// The trust arm's option of that name, or the empty text where the optimiser has none.
std::string arm_option(const RunOptions& options, const std::string& name) {
  const OptionView table = options.defining_table();
  const std::string key = options.optimizer + "." + name;
  return table.has(key) ? std::get<std::string>(table.at(key).get()) : "";
}

/// What a run took from others can't be told from its own files: the other may lie elsewhere, be gone or have been replaced.
void require_nothing_taken(const RunOptions& options, const std::string& where) {
  const BranchOptions& branch = options.train.branch;
  if (branch.exists())
    throw ConfigError(
        fmt::format("{}: branch.from = \"{}\": a forecast takes runs from their beginning, since a parent "
                    "may have had large batches",
                    where, branch.from));
  if (arm_option(options, "trust").rfind("frozen", 0) == 0)
    throw ConfigError(fmt::format(
        "{}: {}.trust = \"{}\": a forecast takes no run with given trust ratios, since the run "
        "that they are of (trust_from = \"{}\") may have had large batches",
        where, options.optimizer, arm_option(options, "trust"), arm_option(options, "trust_from")));
}

void require_small_study(const fs::path& path) {
  if (!fs::exists(path)) return;
  const Study study = read_study(path.string(), {});
  for (const Cell& cell : expand(study))
    require_small(largest_batch(cell.options.train), path.string() + ": " + cell.label);
  for (const Rule& rule : study.selected)
    for (const Condition& condition : rule.when)
      for (const OptionValue& value : condition.values)
        if (condition.key == "batch_size") require_small(value, rule.where + ": a choice of its selection");
}

void require_small_selection(const fs::path& path) {
  if (!fs::exists(path)) return;
  for (const std::vector<TomlEntry>& choice : read_toml_tables(path.string(), "choice", {"when"}).tables)
    for (const TomlEntry& entry : choice)
      if (entry.key == "when.batch_size") require_small(entry.value, path.string());
}

void require_small_rows(const fs::path& path) {
  if (!fs::exists(path)) return;
  const h5::File file = h5::File::open(path.string());
  if (!file.has("runs") || !file.group("runs").has("batch_size")) return;
  for (const int64_t batch : file.group("runs").dataset("batch_size").read<int64_t>())
    require_small(batch, path.string());
}

}  // namespace

void require_small_batches(const fs::path& out, const std::vector<fs::path>& folders,
                           const std::vector<RunOptions>& options) {
  for (size_t i = 0; i < folders.size(); ++i) {
    require_small(largest_batch(options[i].train), folders[i].string());
    require_nothing_taken(options[i], folders[i].string());
  }
  require_small_study(out / "study.toml");
  require_small_selection(out / "selection.toml");
  require_small_rows(out / "sweep.h5");
  require_small_rows(out / "tune.h5");
}

}  // namespace basin
