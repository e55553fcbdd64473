#include "apps/registry_list.h"

#include <functional>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "data/registry.h"
#include "models/registry.h"
#include "optim/registry.h"
#include "optim/schedule.h"
#include "probes/registry.h"
#include "study/run_options.h"

namespace basin {
namespace {

using Json = nlohmann::ordered_json;

const char* type_of(const OptionValue& value) {
  static const char* const names[] = {"bool", "int", "float", "string", "ints", "floats", "strings"};
  return names[value.index()];
}

const char* to_string(OptionRole role) {
  switch (role) {
    case OptionRole::identity:
      return "identity";
    case OptionRole::execution:
      return "execution";
    case OptionRole::measurement:
      return "measurement";
  }
  return "";
}

Json json_of(const Option& option) {
  const OptionValue value = option.get();
  return {{"key", option.key},
          {"help", option.help},
          {"type", type_of(value)},
          {"default", std::visit([](const auto& v) { return Json(v); }, value)},
          {"constraint", option.constraint.text},
          {"role", to_string(option.traits.role)},
          {"sweep", option.traits.may_be_swept()},
          {"tune", option.traits.may_be_tuned()}};
}

/// Those below a key, or all.
std::vector<Option> options_below(const std::string& group) {
  static const RunOptions defaults;
  std::vector<Option> options;
  for (const Option& option : defaults.table())
    if (group.empty() || option.key.rfind(group + ".", 0) == 0) options.push_back(option);
  return options;
}

std::vector<Option> schedule_options() {
  static const ScheduleOptions defaults;
  const OptionView view = view_of(defaults);
  return {view.begin(), view.end()};
}

Json traits_of(const ModelEntry& entry) {
  const ModelTraits traits = entry.traits(*entry.make_options());
  return {{"batch_statistics", traits.batch_statistics}, {"dropout", traits.dropout}};
}

Json traits_of(const OptimizerEntry& entry) {
  const OptimizerTraits traits = entry.traits(*entry.make_options());
  return {{"overlap", traits.overlap},
          {"squares_in", traits.squares_in},
          {"steps_along_gradients", traits.steps_along_gradients}};
}

Json traits_of(const ProbeEntry& entry) { return {{"draws", entry.draws}}; }

Json traits_of(const DatasetEntry& entry) {
  return {{"needs_path", entry.needs_path},
          {"any_size", entry.any_size},
          {"can_be_imported", entry.can_be_imported()},
          {"can_be_fetched", entry.can_be_fetched()}};
}

Json quantities_of(const ProbeEntry& entry) {
  Json headlines = Json::array(), ratios = Json::array();
  for (const auto& [quantity, heading, label] : entry.headlines)
    headlines.push_back({{"quantity", quantity}, {"heading", heading}, {"label", label}});
  for (const auto& [quantity, numerator, denominator] : entry.ratios)
    ratios.push_back({{"quantity", quantity}, {"numerator", numerator}, {"denominator", denominator}});
  return {{"version", entry.version},
          {"definitions", entry.definitions},
          {"headlines", headlines},
          {"ratios", ratios},
          {"copies", entry.copies}};
}

/// A member of any registry.
struct Member {
  std::string name, label, help;
  Json traits, more = Json::object();
};

template <class Entry>
std::vector<Member> members_of(const std::vector<Entry>& registry) {
  std::vector<Member> members;
  for (const Entry& entry : registry) {
    Member& member = members.emplace_back(Member{entry.name, entry.label, entry.help, traits_of(entry)});
    if constexpr (std::is_same_v<Entry, ProbeEntry>) member.more = quantities_of(entry);
  }
  return members;
}

Json json_of(const std::vector<Option>& options) {
  Json array = Json::array();
  for (const Option& option : options) array.push_back(json_of(option));
  return array;
}

Json json_of(const std::vector<Member>& members) {
  Json array = Json::array();
  for (const Member& member : members) {
    Json object = {{"name", member.name},     {"label", member.label},
                   {"help", member.help},     {"order", array.size()},
                   {"traits", member.traits}, {"options", json_of(options_below(member.name))}};
    object.update(member.more);
    array.push_back(std::move(object));
  }
  return array;
}

void print(const std::vector<Option>& options, const std::string& indent) {
  for (const Option& option : options) {
    fmt::print("{}{:<24} {:<16} {}{}\n", indent, option.key, to_toml(option.get()), option.help,
               option.constraint.text.empty() ? "" : " (" + option.constraint.text + ")");
  }
}

void print(const std::vector<Member>& members) {
  for (const Member& member : members) {
    fmt::print("{}\n  {}\n", member.name, member.help);
    print(options_below(member.name), "    ");
  }
}

struct List {
  std::string name;
  std::function<std::vector<Member>()> members;  // or
  std::function<std::vector<Option>()> options;
};

const std::vector<List>& lists() {
  static const std::vector<List> all = {
      {"models", [] { return members_of(model_registry()); }, {}},
      {"optimizers", [] { return members_of(optimizer_registry()); }, {}},
      {"schedules", {}, schedule_options},
      {"datasets", [] { return members_of(dataset_registry()); }, {}},
      {"probes", [] { return members_of(probe_registry()); }, {}},
      {"options", {}, [] { return options_below(""); }},
  };
  return all;
}

}  // namespace

const std::vector<std::string>& list_names() {
  static const std::vector<std::string> names = names_of(lists());
  return names;
}

void print_list(const std::string& name, bool json) {
  const List& list = find_entry(lists(), name, "list");
  if (json) {
    const Json array = list.members ? json_of(list.members()) : json_of(list.options());
    fmt::print("{}\n", array.dump(1));
  } else if (list.members) {
    print(list.members());
  } else {
    print(list.options(), "");
  }
}

}  // namespace basin
