#include "sweep/collect/merge.h"

#include <bit>
#include <map>

#include "core/error.h"
#include "study/run_options.h"

namespace basin {
namespace {

/// A row and the folder that it lies in.
struct Placed {
  SweepRow row;
  std::string folder;
};

/// Columns of runs and of their tables in which two copies of one run may differ. Every other number has to be the same.
const std::set<std::string> kMayDiffer = {
    "seconds",
    "update_seconds",
    "images_per_second",      // wall time
    "rank_wait_share",        // of the wall time
    "rank_bytes_per_update",  // by how many processes there were; one alone has none
    "worker_wait_share",
    "worker_updates_per_step",
    "arrival_time",  // wall time where workers are processes
};

/// Whether it is an option that says how and where a run is computed: data.path, checkpoint_seconds.
bool is_of_execution(const std::string& column) {
  static const RunOptions defaults;
  static const OptionView known = defaults.table();
  return known.has(column) && known.at(column).traits.role == OptionRole::execution;
}

bool same_bits(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return same_bits(x, y); });
}

bool same_bits(const OptionValue& a, const OptionValue& b) {
  const double* x = std::get_if<double>(&a);
  const double* y = std::get_if<double>(&b);
  return x && y ? same_bits(*x, *y) : a == b;
}

std::string shown(const OptionValue* value) {
  if (!value) return "nothing";
  if (const double* number = std::get_if<double>(value)) return fmt::format("{}", *number);
  return to_toml(*value);
}

/// Not what a probe found: that is compared as records.
bool is_compared(const std::string& column) {
  return !kMayDiffer.contains(column) && !is_of_execution(column) && !column.starts_with("probe.");
}

/// "test_acc = 0.5 in A and 0.6 in B", else empty.
std::string other_column(const Placed& a, const Placed& b) {
  std::set<std::string> names;
  for (const SweepRow* row : {&a.row, &b.row})
    for (const auto& [name, value] : row->columns)
      if (is_compared(name)) names.insert(name);
  for (const std::string& name : names) {
    const OptionValue *here = a.row.find(name), *there = b.row.find(name);
    if (here && there && same_bits(*here, *there)) continue;
    return fmt::format("{} = {} in {} and {} in {}", name, shown(here), a.folder, shown(there), b.folder);
  }
  return "";
}

bool same_table(const Table& a, const Table& b) {
  const auto alike = [](const Column& x, const Column& y) {
    return x.name == y.name && x.width == y.width && x.labels == y.labels;
  };
  if (!std::equal(a.columns.begin(), a.columns.end(), b.columns.begin(), b.columns.end(), alike))
    return false;
  if (a.rows.size() != b.rows.size()) return false;
  std::vector<bool> compared;  // by entry of a row
  for (const Column& column : a.columns)
    compared.insert(compared.end(), static_cast<size_t>(column.width), !kMayDiffer.contains(column.name));
  for (size_t i = 0; i < a.rows.size(); ++i)
    if (compared[i % compared.size()] && !same_bits(a.rows[i], b.rows[i])) return false;
  return true;
}

bool same_quantity(const Quantity& a, const Quantity& b) {
  return a.name == b.name && a.definition == b.definition && same_bits(a.value, b.value) &&
         same_bits(a.uncertainty, b.uncertainty) && same_bits(a.ci_low, b.ci_low) &&
         same_bits(a.ci_high, b.ci_high) && a.status == b.status && a.entry_status == b.entry_status;
}

/// Checkpoint, probe and fingerprint of the settings: the name of a probe's file.
using ProbeName = std::tuple<std::string, std::string, std::string>;

std::map<ProbeName, const ProbeRecord*> probes_of(const SweepRow& row) {
  std::map<ProbeName, const ProbeRecord*> probes;
  for (const std::vector<ProbeRecord>* records : {&row.probes, &row.extra_probes})
    for (const ProbeRecord& record : *records)
      probes[{record.checkpoint, record.probe, probe_attribute_text(record, "settings")}] = &record;
  return probes;
}

std::string other_probe(const Placed& a, const Placed& b) {
  const auto ours = probes_of(a.row), theirs = probes_of(b.row);
  size_t both = 0;
  for (const auto& [name, record] : ours) {
    const auto found = theirs.find(name);
    if (found == theirs.end()) continue;
    ++both;
    const std::vector<Quantity>&x = record->quantities, &y = found->second->quantities;
    if (record->status != found->second->status ||
        !std::equal(x.begin(), x.end(), y.begin(), y.end(), same_quantity))
      return fmt::format("the probe {} on {} found one thing in {} and another in {}", record->probe,
                         record->checkpoint, a.folder, b.folder);
  }
  if (both < ours.size() && both < theirs.size())
    return fmt::format("{} and {} have probes of it that the other lacks", a.folder, b.folder);
  return "";
}

/// In words where two runs that have ended are not the same run; else empty.
std::string difference(const Placed& a, const Placed& b) {
  if (std::string column = other_column(a, b); !column.empty()) return column;
  for (const auto& [name, table] :
       {std::pair{"train", &SweepRow::train}, {"eval", &SweepRow::eval}, {"layers", &SweepRow::layers}}) {
    if (!same_table(a.row.*table, b.row.*table))
      return fmt::format("its table \"{}\" is another in {} than in {}", name, a.folder, b.folder);
  }
  for (const auto& [split, outcomes] : a.row.outcomes) {
    const auto other = b.row.outcomes.find(split);  // programs before 1.3 kept none at loss levels
    if (other != b.row.outcomes.end() && other->second.correct != outcomes.correct)
      return fmt::format("other test images are right in {} than in {}", a.folder, b.folder);
  }
  return other_probe(a, b);
}

/// Which of two copies of a run is taken.
Placed the_one(Placed a, Placed b) {
  const bool a_ended = is_final(a.row.state()), b_ended = is_final(b.row.state());
  if (!a_ended || !b_ended) return b_ended ? std::move(b) : std::move(a);
  if (const std::string found = difference(a, b); !found.empty())
    throw IoError(fmt::format("run {}: {}: not the same run, so nothing was merged", a.row.run_id, found));
  return probes_of(b.row).size() > probes_of(a.row).size() ? std::move(b) : std::move(a);
}

/// The options of the data that are part of a run's id. data.path is none: two sweeps may have read other images under the
/// same options, or the same under another path.
std::string data_options_of(const SweepRow& row) {
  std::string options;
  for (const auto& [name, value] : row.columns)
    if (name.starts_with("data.") && !is_of_execution(name)) options += name + " = " + shown(&value) + "\n";
  return options;
}

void require_one_data(const std::vector<Placed>& rows) {
  std::map<std::string, const Placed*> first;  // by data_options_of()
  for (const Placed& placed : rows) {
    const std::string hash = placed.row.text("dataset.sha256");
    if (hash.empty()) continue;
    const Placed& known = *first.emplace(data_options_of(placed.row), &placed).first->second;
    if (const std::string other = known.row.text("dataset.sha256"); other != hash)
      throw IoError(
          fmt::format("run {} in {} was trained on data with SHA-256 {}, run {} in {} on {}: not merged",
                      known.row.run_id, known.folder, other, placed.row.run_id, placed.folder, hash));
  }
}

}  // namespace

std::vector<SweepRow> merged(std::vector<SweepSource> sources) {
  std::map<std::string, Placed> by_id;
  for (SweepSource& source : sources) {
    for (SweepRow& row : source.rows) {
      Placed placed{std::move(row), source.folder};
      const std::string run_id = placed.row.run_id;
      const auto known = by_id.find(run_id);
      if (known == by_id.end())
        by_id.emplace(run_id, std::move(placed));
      else
        known->second = the_one(std::move(known->second), std::move(placed));
    }
  }
  std::vector<Placed> all;
  for (auto& [run_id, placed] : by_id) all.push_back(std::move(placed));
  if (sources.size() > 1) require_one_data(all);
  std::vector<SweepRow> rows;
  for (Placed& placed : all) {
    if (sources.size() > 1) placed.row.columns.emplace_back("source", placed.folder);
    rows.push_back(std::move(placed.row));
  }
  sort_rows(rows);
  return rows;
}

}  // namespace basin
