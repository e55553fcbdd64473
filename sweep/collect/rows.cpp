#include "sweep/collect/rows.h"

#include <filesystem>

#include "core/error.h"
#include "core/messages.h"
#include "io/run_file.h"
#include "io/status_file.h"
#include "runs/probe_settings.h"
#include "study/study.h"

namespace basin {
namespace fs = std::filesystem;
namespace {

void put(SweepRow& row, const std::string& column, OptionValue value) {
  for (auto& [name, old] : row.columns) {
    if (name == column) {
      old = std::move(value);
      return;
    }
  }
  row.columns.emplace_back(column, std::move(value));
}

// Next to a result of the same name an option has a column of its own as well: what was asked for.
void put_option(SweepRow& row, const std::string& key, const OptionValue& value) {
  put(row, key, value);
  if (key == "updates" || key == "epochs") put(row, kAskedFor + key, value);
}

std::set<int64_t> spread_rows(int64_t count, int64_t limit) {
  std::set<int64_t> kept;
  const int64_t wanted = std::min(count, limit);
  for (int64_t i = 0; i < wanted; ++i) kept.insert(wanted == 1 ? 0 : i * (count - 1) / (wanted - 1));
  return kept;
}

/// At most `limit` rows of the table of this name, and the `others`; one without columns where the run has none.
Table thinned(const RunRecord& record, const std::string& name, int64_t limit,
              const std::set<int64_t>& others = {}) {
  const auto found = record.tables.find(name);
  if (found == record.tables.end()) return {};
  Table result = found->second;
  result.rows.clear();
  std::set<int64_t> kept = spread_rows(found->second.row_count(), limit);
  kept.insert(others.begin(), others.end());
  for (const int64_t row : kept) {
    const auto entries = found->second.rows.begin() + row * result.row_width();
    result.rows.insert(result.rows.end(), entries, entries + result.row_width());
  }
  return result;
}

/// The losses at which a run is looked at: its loss levels and its target.
std::vector<double> watched_losses(const RunHeader& header) {
  std::vector<double> losses;
  for (const auto& [key, value] : header.options) {
    const auto* const levels = std::get_if<std::vector<double>>(&value);
    if (key == "loss_levels" && levels) losses.insert(losses.end(), levels->begin(), levels->end());
    if (key == "target_loss") losses.push_back(as_number(value));
  }
  return losses;
}

/// Among the evaluations the first at or below each of those losses, and the one before it: where a run passed the loss, and
/// between which updates.
std::set<int64_t> looks_at_losses(const RunRecord& record) {
  std::set<int64_t> looks;
  const auto eval = record.tables.find("eval");
  if (eval == record.tables.end()) return looks;
  const std::vector<Column>& columns = eval->second.columns;
  const auto is_loss = [](const Column& column) { return column.name == "train_loss"; };
  if (std::none_of(columns.begin(), columns.end(), is_loss)) return looks;
  const std::vector<double> losses = eval->second.column("train_loss");
  for (const double level : watched_losses(record.header)) {
    const auto passed =
        std::find_if(losses.begin(), losses.end(), [&](double loss) { return loss <= level; });
    if (passed == losses.end()) continue;
    const int64_t row = passed - losses.begin();
    looks.insert({std::max<int64_t>(row - 1, 0), row});
  }
  return looks;
}

void take_record(SweepRow& row, const RunRecord& record) {
  put(row, "config_id", record.header.config_id);
  put(row, "status", std::string(to_string(record.status)));
  put(row, "status_message", record.status_message);
  for (const auto& [key, value] : record.header.options) put_option(row, key, value);
  for (const auto& [key, value] : record.header.data) put(row, "dataset." + key, value);
  for (const auto& [key, value] : record.summary) put(row, key, value);
  row.train = thinned(record, "train", kTrainRows);
  row.eval = thinned(record, "eval", kEvalRows, looks_at_losses(record));
  row.layers = thinned(record, "layers", kLayersRows);
  row.ledger = thinned(record, "ledger", kTrainRows);
  row.parameters = record.header.parameters;
  for (const auto& [split, outcomes] : record.outcomes)
    if (split == "test" || split.starts_with("test@")) row.outcomes[split] = outcomes;
}

void take_probe(SweepRow& row, const std::string& path) {
  ProbeRecord probe = read_probe_file(path);
  if (!is_studys_own(path, probe)) {
    row.extra_probes.push_back(std::move(probe));
    return;
  }
  for (const Quantity& quantity : probe.quantities) {
    const auto entry = [](const std::vector<double>& values, size_t i) {
      return i < values.size() ? values[i] : NAN;
    };
    for (size_t i = 0; i < quantity.value.size(); ++i) {
      const std::string name = probe_column(probe, quantity, i);
      if (row.find(name))
        throw IoError(fmt::format("run {}: two quantities for the column {}", row.run_id, name));
      row.columns.emplace_back(name, quantity.value[i]);
      row.columns.emplace_back(name + ".uncertainty", entry(quantity.uncertainty, i));
      row.columns.emplace_back(name + ".ci_low", entry(quantity.ci_low, i));
      row.columns.emplace_back(name + ".ci_high", entry(quantity.ci_high, i));
      row.columns.emplace_back(name + ".status", std::string(to_string(quantity.status_of(i))));
    }
  }
  row.probes.push_back(std::move(probe));
}

std::vector<fs::path> sorted_entries(const fs::path& folder, const std::string& extension) {
  std::vector<fs::path> found;
  if (!fs::is_directory(folder)) return found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (extension.empty() ? entry.is_directory() : entry.path().extension() == extension)
      found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

void take_options(SweepRow& row, const RunOptions& options) {
  put(row, "config_id", options.config_id());
  for (const Option& option : options.defining_table()) put_option(row, option.key, option.get());
}

void fill(SweepRow& row, const fs::path& folder, bool knows_its_options) {
  if (fs::exists(folder / "run.h5")) {
    take_record(row, read_run_file((folder / "run.h5").string()));
  } else if (!knows_its_options && fs::exists(folder / "config.toml")) {
    take_options(row, load_run_options((folder / "config.toml").string(), {}));
  }
  if (fs::exists(folder / "status.json")) {
    const RunStatus status = read_status((folder / "status.json").string());
    put(row, "status", std::string(to_string(status.status)));
    put(row, "status_message", status.message);
  }
  for (const fs::path& file : sorted_entries(folder / "probes", ".h5")) take_probe(row, file.string());
}

/// The study's cells by run_id, with every rate that it may choose; empty where the folder has no study.
std::map<std::string, RunOptions> cells_of(const fs::path& sweep_folder) {
  std::map<std::string, RunOptions> cells;
  const fs::path study = sweep_folder / "study.toml";
  if (!fs::exists(study)) return cells;
  try {
    for (Cell& cell : expand(read_study(study.string(), {})))
      cells.emplace(cell.run_id, std::move(cell.options));
  } catch (const IoError&
               error) {  // a checkpoint outside of the study that it branched from: the runs stand without it
    warn(error.what());
  }
  return cells;
}

/// `options`: those of the study's cell, where they are known.
SweepRow read_row(const fs::path& folder, const RunOptions* options) {
  SweepRow row;
  row.run_id = folder.filename().string();
  row.columns = {{"run_id", row.run_id},
                 {"config_id", std::string()},
                 {"status", std::string(to_string(RunState::queued))},
                 {"status_message", std::string()}};
  if (options) take_options(row, *options);
  try {
    fill(row, folder, options != nullptr);
  } catch (const Error& error) {
    // One damaged run must not hide the others: it is a row that says what is wrong.
    warn(error.what());
    put(row, "status", std::string(to_string(RunState::failed)));
    put(row, "status_message", std::string(error.what()));
  }
  return row;
}

}  // namespace

const OptionValue* SweepRow::find(const std::string& column) const {
  for (const auto& [name, value] : columns) {
    if (name == column) return &value;
  }
  return nullptr;
}

double SweepRow::number(const std::string& column) const {
  const OptionValue* value = find(column);
  return value ? as_number(*value) : NAN;
}

RunState SweepRow::state() const { return parse_run_state(text("status"), "run " + run_id); }

std::string SweepRow::text(const std::string& column) const {
  const OptionValue* value = find(column);
  const std::string* string = value ? std::get_if<std::string>(value) : nullptr;
  return string ? *string : std::string();
}

std::string probe_column(const ProbeRecord& probe, const Quantity& quantity, size_t index) {
  return fmt::format("probe.{}.{}.{}", probe.checkpoint, probe.probe,
                     entry_name(quantity.name, quantity.is_vector, index));
}

std::string probe_attribute_text(const ProbeRecord& probe, const std::string& name) {
  for (const auto& [key, value] : probe.attributes) {
    if (const std::string* text = std::get_if<std::string>(&value); text && key == name) return *text;
  }
  return "";
}

double probe_attribute(const ProbeRecord& probe, const std::string& name) {
  for (const auto& [key, value] : probe.attributes) {
    if (key == name) return as_number(value);
  }
  return NAN;
}

std::vector<SweepRow> read_sweep_rows(const std::string& sweep_folder) {
  const std::map<std::string, RunOptions> cells = cells_of(sweep_folder);
  std::vector<SweepRow> rows;
  std::vector<std::string> strays;
  for (const fs::path& folder : sorted_entries(fs::path(sweep_folder) / "runs", "")) {
    const auto cell = cells.find(folder.filename().string());
    if (cells.empty() || cell != cells.end())
      rows.push_back(read_row(folder, cells.empty() ? nullptr : &cell->second));
    else
      strays.push_back(folder.filename().string());
  }
  if (!strays.empty()) {
    warn(fmt::format("{}/runs holds {} of another study, left out: {}", sweep_folder,
                     counted(strays.size(), "run"), fmt::join(strays, ", ")));
  }
  if (rows.empty()) throw IoError(sweep_folder + ": has no folder runs/ with a run in it");
  sort_rows(rows);
  return rows;
}

void sort_rows(std::vector<SweepRow>& rows) {
  const auto key = [](const SweepRow& row) {
    return std::make_tuple(row.text("protocol"), row.text("optimizer"), row.number("batch_size"),
                           row.number("learning_rate"), row.number("seed"), row.run_id);
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const SweepRow& a, const SweepRow& b) {
    // NaN (a run without options) has no place in an order: such rows come first, by run_id.
    const bool nan_a = std::isnan(a.number("batch_size")), nan_b = std::isnan(b.number("batch_size"));
    if (nan_a || nan_b) return nan_a != nan_b ? nan_a : a.run_id < b.run_id;
    return key(a) < key(b);
  });
}

}  // namespace basin
