#include "apps/output/json_output.h"

#include <CLI/CLI.hpp>

#include "core/build_info.h"

namespace basin {
namespace {

/// The entry, or null where the file has none.
Json entry(const std::vector<double>& values, size_t i) {
  return i < values.size() ? Json(values[i]) : Json();
}

}  // namespace

CLI::Option* add_json_flag(CLI::App& command, bool& json) {
  return command.add_flag("--json", json, "print one JSON document, for programs (docs/json.md)");
}

void print_json(const std::string& command, const Json& body) {
  Json document = {{"schema", "basin/cli/" + command},
                   {"schema_version", kJsonVersion},
                   {"basin", build_version()},
                   {"commit", build_git_commit()}};
  document.update(body);
  // A file's name may be no UTF-8.
  fmt::print("{}\n", document.dump(1, ' ', false, Json::error_handler_t::replace));
}

Json json_of(const OptionValue& value) {
  return std::visit([](const auto& v) { return Json(v); }, value);
}

Json json_of(const h5::Attributes& attributes) {
  Json object = Json::object();
  for (const auto& [name, value] : attributes) object[name] = json_of(value);
  return object;
}

Json json_of(const Quantity& quantity) {
  Json numbers = Json::array();
  for (size_t i = 0; i < quantity.value.size(); ++i) {
    const bool has_error = quantity.uncertainty_kind != UncertaintyKind::none;
    numbers.push_back({{"name", entry_name(quantity.name, quantity.is_vector, i)},
                       {"quantity", quantity.name},
                       {"value", quantity.value[i]},
                       {"uncertainty", has_error ? entry(quantity.uncertainty, i) : Json()},
                       {"uncertainty_kind", to_string(quantity.uncertainty_kind)},
                       {"ci_low", entry(quantity.ci_low, i)},
                       {"ci_high", entry(quantity.ci_high, i)},
                       {"status", to_string(quantity.status_of(i))},
                       {"units", quantity.units},
                       {"long_name", quantity.long_name},
                       {"definition", quantity.definition}});
  }
  return numbers;
}

Json json_of(const ProbeRecord& record) {
  Json numbers = Json::array();
  for (const Quantity& quantity : record.quantities)
    for (Json& number : json_of(quantity)) numbers.push_back(std::move(number));
  return {{"run_id", record.run_id},
          {"config_id", record.config_id},
          {"checkpoint", record.checkpoint},
          {"probe", record.probe},
          {"status", to_string(record.status)},
          {"message", record.message},
          {"attributes", json_of(record.attributes)},
          {"numbers", std::move(numbers)}};
}

}  // namespace basin
