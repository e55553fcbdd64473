#include "study/trust_ratios.h"

#include <filesystem>

#include "core/error.h"
#include "io/run_file.h"
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

}  // namespace

std::vector<std::string> mean_trust_ratios(const std::string& run) {
  const std::string path = std::filesystem::is_directory(run) ? run + "/run.h5" : run;
  const RunRecord record = read_run_file(path);
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

void take_trust_ratios(OptionTable& table, const std::string& optimizer) {
  const std::string arm = optimizer + ".trust", from = arm + "_from", ratios = arm + "_ratios";
  if (!table.has(from)) return;
  const std::string run = std::get<std::string>(table.at(from).get());
  const bool frozen = std::get<std::string>(table.at(arm).get()).rfind("frozen", 0) == 0;
  if (run.empty() || !frozen || !std::get<std::vector<std::string>>(table.at(ratios).get()).empty()) return;
  table.set(ratios, mean_trust_ratios(run), from);
}

}  // namespace basin
