#include "apps/commands/registry_list.h"

#include <functional>

#include "apps/output/json_output.h"
#include "core/error.h"
#include "data/registry.h"
#include "models/registry.h"
#include "optim/registry.h"
#include "optim/schedule.h"
#include "probes/registry.h"
#include "runs/surfaces/registry.h"
#include "study/run_options.h"
#include "trainers/hooks/registry.h"

namespace basin {
namespace {

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

OptionView options_of_a_run() {
  static const RunOptions defaults;
  return defaults.table();
}

std::vector<Option> all_options() {
  const OptionView table = options_of_a_run();
  return {table.begin(), table.end()};
}

/// The options of its table.
template <class Entry>
std::vector<Option> options_of(const Entry& entry) {
  std::vector<Option> options;
  for (const Option& option : options_of_a_run())
    if (option.key.rfind(entry.name + ".", 0) == 0) options.push_back(option);
  return options;
}

/// In a table of that name, which only `basin landscape` reads.
std::vector<Option> options_of(const LandscapeKind& kind) {
  static const OptionSets defaults(landscape_kinds());
  const OptionView table = defaults.at(kind.name).view(kind.name);
  return {table.begin(), table.end()};
}

/// A hook binds its keys at any place.
std::vector<Option> options_of(const HookEntry& entry) {
  const OptionView all = options_of_a_run();
  const std::unique_ptr<HookOptions> mine = entry.make_options();
  OptionTable keys;
  mine->bind(keys);
  std::vector<Option> options;
  for (const Option& option : keys) options.push_back(all.at(option.key));
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
          {"weights_in", traits.weights_in},
          {"state_by_weight", traits.state_by_weight},
          {"steps_along_gradients", traits.steps_along_gradients},
          {"gradients_elsewhere", traits.gradients_elsewhere},
          {"magnifies_rounding", traits.magnifies_rounding}};
}

Json traits_of(const ProbeEntry& entry) { return {{"draws", entry.draws}}; }

Json traits_of(const DatasetEntry& entry) {
  return {{"needs_path", entry.needs_path},
          {"any_size", entry.any_size},
          {"can_be_imported", entry.can_be_imported()},
          {"can_be_fetched", entry.can_be_fetched()}};
}

Json traits_of(const HookEntry& entry) { return {{"on", entry.on}}; }

Json traits_of(const LandscapeKind& kind) {
  return {{"least_checkpoints", kind.least}, {"most_checkpoints", kind.most}};
}

Json quantities_of(const ProbeEntry& entry) {
  Json headlines = Json::array(), ratios = Json::array();
  for (const auto& [quantity, heading, label] : entry.headlines)
    headlines.push_back({{"quantity", quantity}, {"heading", heading}, {"label", label}});
  for (const auto& [quantity, numerator, denominator] : entry.ratios)
    ratios.push_back({{"quantity", quantity}, {"numerator", numerator}, {"denominator", denominator}});
  Json needs = Json::array();
  for (const Answer answer : entry.make(*entry.make_options())->needs()) needs.push_back(to_string(answer));
  return {{"version", entry.version}, {"needs", needs},   {"definitions", entry.definitions},
          {"headlines", headlines},   {"ratios", ratios}, {"copies", entry.copies}};
}

Json summary_of(const HookEntry& entry) {
  Json numbers = Json::array();
  for (const Column& number : entry.summary)
    numbers.push_back({{"name", number.name},
                       {"units", number.units},
                       {"long_name", number.long_name},
                       {"definition", number.definition}});
  return {{"summary", numbers}};
}

/// A member of any registry.
struct Member {
  std::string name, help;
  std::vector<Option> options;
  Json head, traits, more = Json::object();
};

template <class Entry>
std::vector<Member> members_of(const std::vector<Entry>& registry) {
  std::vector<Member> members;
  for (const Entry& entry : registry) {
    Member& member = members.emplace_back(
        Member{entry.name, entry.help, options_of(entry), {{"name", entry.name}}, traits_of(entry)});
    if constexpr (requires { entry.label; }) member.head["label"] = entry.label;
    if constexpr (std::is_same_v<Entry, ProbeEntry>) member.more = quantities_of(entry);
    if constexpr (std::is_same_v<Entry, HookEntry>) member.more = summary_of(entry);
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
    Json object = member.head;
    object.update({{"help", member.help},
                   {"order", array.size()},
                   {"traits", member.traits},
                   {"options", json_of(member.options)}});
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
    print(member.options, "    ");
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
      {"hooks", [] { return members_of(hook_registry()); }, {}},
      {"landscapes", [] { return members_of(landscape_kinds()); }, {}},
      {"options", {}, all_options},
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
    print_json("list", {{"list", name},
                        {"entries", list.members ? json_of(list.members()) : json_of(list.options())}});
  } else if (list.members) {
    print(list.members());
  } else {
    print(list.options(), "");
  }
}

}  // namespace basin
