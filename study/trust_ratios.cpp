#include "study/trust_ratios.h"

#include "core/error.h"
#include "core/nearest.h"
#include "io/run_file.h"
#include "optim/registry.h"
#include "optim/trust_arm.h"

namespace basin {
namespace {

// The first place of the column's entries in a row, and the column.
std::pair<int64_t, const Column*> find_ratios(const Table& layers) {
  int64_t place = 0;
  for (const Column& column : layers.columns) {
    if (column.name == "trust_ratio") return {place, &column};
    place += column.width;
  }
  return {0, nullptr};
}

std::string key_of(const RunOptions& options, const std::string& name) {
  return fmt::format("{}.{}", options.optimizer, name);
}

class TrustLink final : public RunLink {
 public:
  std::string key(const RunOptions& options) const override { return key_of(options, "trust_from"); }
  std::string text(const RunOptions& options) const override {
    const TrustArm* arm = trust_arm(options);
    return arm && arm->frozen() && arm->trust_ratios.empty() ? arm->trust_from : "";
  }
  bool owns(const std::string& key) const override {
    const size_t dot = key.find('.');
    if (dot == std::string::npos || !contains(names_of(optimizer_registry()), key.substr(0, dot)))
      return false;
    TrustArm arm;
    OptionTable table;
    bind_trust_arm(table, arm);
    return table.has(key.substr(dot + 1));
  }
  std::string verb() const override { return "has its ratios from"; }
  std::string instead() const override { return "or trust_from the path of a record"; }
  void take(Cell& cell, const Cell& named) const override {
    const RunOptions &ours = cell.options, &theirs = named.options;
    if (theirs.model != ours.model)
      throw ConfigError(fmt::format("{}: {} names {}, which has another network: {} there, {} here",
                                    cell.label, key(ours), named.label, theirs.model, ours.model));
    if (!trust_arm(theirs))
      throw ConfigError(fmt::format("{}: {} names {}, and {} has no trust ratios", cell.label, key(ours),
                                    named.label, theirs.optimizer));
    OptionTable table = cell.options.table();
    table.set(key_of(ours, "trust_setting"), theirs.config_id(), cell.label);
    table.set(key(ours), named.run_id, cell.label);
  }
};

}  // namespace

std::vector<std::string> mean_trust_ratios(const std::string& run) {
  const std::string path = run_file_at(run);
  const RunRecord record = read_run_file(path);
  if (record.status == RunState::diverged)
    throw ConfigError(path + ": its run diverged: its trust ratios are of no use");
  const auto layers = record.tables.find("layers");
  std::vector<std::string> entries;
  if (layers != record.tables.end()) {
    const Table& table = layers->second;
    const auto [place, column] = find_ratios(table);
    for (int64_t entry = 0; column != nullptr && entry < column->width; ++entry) {
      double sum = 0;
      for (int64_t row = 0; row < table.row_count(); ++row)
        sum += table.rows[static_cast<size_t>(row * table.row_width() + place + entry)];
      const double mean = sum / static_cast<double>(table.row_count());
      if (std::isfinite(mean))
        entries.push_back(trust_ratio_text(column->labels[static_cast<size_t>(entry)], mean));
    }
  }
  if (entries.empty())
    throw ConfigError(path + ": no trust ratios: its optimiser has none, or it has no row of /layers");
  return entries;
}

void take_trust_ratios(RunOptions& options, OptionTable& table) {
  const TrustArm* arm = trust_arm(options);
  if (arm == nullptr || arm->trust_from.empty()) return;
  const std::string from = arm->trust_from, key = key_of(options, "trust_from");
  const bool is_read = arm->frozen() && arm->trust_ratios.empty();
  if (arm->frozen() && (is_run_id(from) || (is_read && has_conditions(from)))) return;
  if (is_read) {
    table.set(key_of(options, "trust_ratios"), mean_trust_ratios(from), key);
    table.set(key_of(options, "trust_path"), from, key);
  }
  table.set(key, std::string(), key);
}

std::unique_ptr<RunLink> trust_link() { return std::make_unique<TrustLink>(); }

}  // namespace basin
