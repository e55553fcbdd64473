#include "tests/apps/stored_numbers.h"

#include <filesystem>
#include <set>

#include "core/files.h"
#include "io/h5.h"
#include "io/status_file.h"

namespace basin::testing {
namespace {

namespace fs = std::filesystem;
using Numbers = std::map<std::string, std::string>;

bool is_incidental(const std::string& name) {
  static const std::set<std::string> names = {"seconds",       "update_seconds", "images_per_second",
                                              "time",          "created_utc",    "updated_utc",
                                              "started_utc",   "ended_utc",      "pid",
                                              "host",          "argv",           "cwd",
                                              "journal_offset"};
  return names.count(name) > 0;
}

/// to_toml() is for options, which are never NaN, and its decimals are not bits.
std::string exact(const OptionValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{:a}", *number);
  if (const auto* list = std::get_if<std::vector<double>>(&value)) {
    std::string text;
    for (const double number : *list) text += fmt::format("{:a} ", number);
    return text;
  }
  return to_toml(value);
}

void take_attributes(const h5::Object& object, const std::string& where, Numbers& numbers) {
  for (const auto& [name, value] : object.attributes()) {
    if (!is_incidental(name)) numbers[fmt::format("{}@{}", where, name)] = exact(value);
  }
}

std::string content(const h5::DataSet& dataset) {
  std::string text = fmt::format("[{}] ", fmt::join(dataset.shape(), ", "));
  if (dataset.is_text()) {
    return text + (dataset.shape().empty() ? dataset.read_text()
                                           : fmt::format("{}", fmt::join(dataset.read_texts(), "\n")));
  }
  const at::Tensor tensor = dataset.read_tensor().contiguous();
  return text + c10::toString(dataset.dtype()) + " " +
         std::string(static_cast<const char*>(tensor.const_data_ptr()), static_cast<size_t>(tensor.nbytes()));
}

void take_group(const h5::Group& group, const std::string& where, Numbers& numbers) {
  take_attributes(group, where, numbers);
  for (const std::string& name : group.dataset_names()) {
    if (is_incidental(name)) continue;
    const h5::DataSet dataset = group.dataset(name);
    const std::string path = fmt::format("{}/{}", where, name);
    numbers[path] = content(dataset);
    take_attributes(dataset, path, numbers);
  }
  for (const std::string& name : group.group_names())
    take_group(group.group(name), fmt::format("{}/{}", where, name), numbers);
}

void take_status(const RunStatus& status, const std::string& where, Numbers& numbers) {
  numbers[where] = fmt::format("{} {} {} {} {:a} {:a}", status.run_id, to_string(status.status),
                               status.message, status.update, status.done, status.loss);
}

}  // namespace

Numbers stored_numbers(const std::string& folder) {
  static const std::set<std::string> texts = {"table.md", "config.toml", "cell.toml", "selection.toml",
                                              "done"};
  Numbers numbers;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename(), label = entry.path().stem();
    const std::string where = fs::relative(entry.path(), folder).string();
    if (entry.path().extension() == ".h5" && label != "latest" && label != "previous") {
      take_group(h5::File::open(entry.path()), where + ":", numbers);
    } else if (name == "status.json") {
      take_status(read_status(entry.path()), where, numbers);
    } else if (texts.count(name)) {
      numbers[where] = read_file(entry.path());
    }
  }
  return numbers;
}

std::vector<std::string> differences(const Numbers& a, const Numbers& b) {
  std::vector<std::string> names;
  for (const auto& [name, text] : a) {
    const auto found = b.find(name);
    if (found == b.end() || found->second != text) names.push_back(name);
  }
  for (const auto& [name, text] : b) {
    if (!a.count(name)) names.push_back(name);
  }
  return names;
}

}  // namespace basin::testing
