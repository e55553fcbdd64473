#include "tests/apps/tiny_study.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <map>
#include <thread>

#include "io/status_file.h"

namespace basin::testing {
namespace {

namespace fs = std::filesystem;

bool is_time(const std::string& name) {
  return name.find("seconds") != std::string::npos || name == "images_per_second";
}

std::string without_times(const Table& table) {
  std::string text;
  int64_t start = 0;
  for (const Column& column : table.columns) {
    const auto begin = static_cast<size_t>(start);
    start += column.width;
    if (is_time(column.name)) continue;
    text += fmt::format("{}.{}:", table.name, column.name);
    for (size_t row = begin; row < table.rows.size(); row += static_cast<size_t>(table.row_width())) {
      for (int64_t i = 0; i < column.width; ++i)
        text += fmt::format(" {}", table.rows[row + static_cast<size_t>(i)]);
    }
    text += '\n';
  }
  return text;
}

}  // namespace

TinyStudy::TinyStudy(const std::vector<std::string>& lines, const std::vector<std::string>& tables) {
  std::map<std::string, std::string> settings = {
      {"model", "\"mlp\""},      {"optimizer", "\"sgd\""},     {"protocol", "\"A-updates\""},
      {"updates", "6"},          {"batch_size", "64"},         {"micro_batch", "32"},
      {"learning_rate", "0.05"}, {"schedule", "\"constant\""}, {"checkpoint_seconds", "0"}};
  for (const std::string& line : lines)
    settings[line.substr(0, line.find(' '))] = line.substr(line.find('=') + 2);
  std::string text;
  for (const auto& [key, value] : settings) text += fmt::format("{} = {}\n", key, value);
  text += "[data]\nset = \"synthetic\"\ntrain_examples = 200\ntest_examples = 60\n";
  text += "[mlp]\nhidden = [8]\n[runtime]\nthreads = 1\nprogress = false\n";
  for (const std::string& table : tables) text += table + "\n";
  write_text(study(), text);
}

std::vector<std::string> TinyStudy::train_arguments(const std::vector<std::string>& more,
                                                    const std::string& out) const {
  std::vector<std::string> arguments = {"train", study(), "--out", path(out)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::string TinyStudy::run_folder(const std::string& out) const {
  for (const auto& entry : fs::directory_iterator(path(out) + "/runs")) return entry.path().string();
  throw std::runtime_error("no run");
}

std::string comparable(const RunRecord& record) {
  std::string text =
      record.header.run_id + " " + to_string(record.status) + " " + record.status_message + "\n";
  for (const auto& [name, table] : record.tables) text += without_times(table);
  for (const auto& [split, outcomes] : record.outcomes) {
    text += fmt::format("{}: {} {} {}\n", split, fmt::join(outcomes.correct, " "),
                        fmt::join(outcomes.loss, " "), fmt::join(outcomes.margin, " "));
  }
  for (const auto& [key, value] : record.summary) {
    if (is_time(key)) continue;
    // to_toml() is for options, which are never NaN.
    const auto* number = std::get_if<double>(&value);
    text += key + " = " + (number ? fmt::format("{}", *number) : to_toml(value)) + "\n";
  }
  for (const auto& event : record.events) text += event.level + " " + event.text + "\n";
  return text;
}

std::string provenance_of(const RunRecord& record, const std::string& key) {
  for (const auto& [name, value] : record.header.provenance)
    if (name == key) return value;
  return "";
}

std::vector<pid_t> children_of(pid_t parent) {
  std::ifstream list(fmt::format("/proc/{0}/task/{0}/children", parent));
  std::vector<pid_t> children;
  for (pid_t child; list >> child;) children.push_back(child);
  return children;
}

/// Waits until the run has made some updates.
void wait_for_updates(const TinyStudy& study, RunningBinary& process, int64_t updates,
                      const std::string& out) {
  const auto start = std::chrono::steady_clock::now();
  while (process.alive() && std::chrono::steady_clock::now() - start < std::chrono::seconds(60)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    try {
      if (read_status(study.run_folder(out) + "/status.json").update >= updates) return;
    } catch (const std::exception&) {
      continue;  // not there yet
    }
  }
  FAIL() << "no updates: " << process.wait().err;
}

}  // namespace basin::testing
