#include "core/options.h"

#include <sstream>

#include "core/error.h"
#include "core/nearest.h"

namespace basin {
namespace {

const char* type_name(const OptionValue& value) {
  static const char* const names[] = {"true or false",    "a whole number",          "a number",
                                      "a string",         "a list of whole numbers", "a list of numbers",
                                      "a list of strings"};
  return names[value.index()];
}

/// The value as the type that `like` holds, where nothing is lost: whole numbers serve as numbers, one value as a list of one,
/// an empty list as any list. Otherwise nothing.
std::optional<OptionValue> converted(const OptionValue& value, const OptionValue& like) {
  if (value.index() == like.index()) return value;
  const auto as_doubles = [](const std::vector<int64_t>& v) {
    return std::vector<double>(v.begin(), v.end());
  };
  if (const auto* i = std::get_if<int64_t>(&value)) {
    if (std::holds_alternative<double>(like)) return static_cast<double>(*i);
    if (std::holds_alternative<std::vector<int64_t>>(like)) return std::vector<int64_t>{*i};
    if (std::holds_alternative<std::vector<double>>(like))
      return std::vector<double>{static_cast<double>(*i)};
  }
  if (const auto* d = std::get_if<double>(&value); d && std::holds_alternative<std::vector<double>>(like))
    return std::vector<double>{*d};
  if (const auto* s = std::get_if<std::string>(&value);
      s && std::holds_alternative<std::vector<std::string>>(like))
    return std::vector<std::string>{*s};
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value);
      list && std::holds_alternative<std::vector<double>>(like))
    return as_doubles(*list);
  if (const auto* list = std::get_if<std::vector<double>>(&value); list && list->empty()) {
    if (std::holds_alternative<std::vector<int64_t>>(like)) return std::vector<int64_t>{};
    if (std::holds_alternative<std::vector<std::string>>(like)) return std::vector<std::string>{};
  }
  return std::nullopt;
}

bool is_finite(const OptionValue& value) {
  if (const auto* d = std::get_if<double>(&value)) return std::isfinite(*d);
  if (const auto* list = std::get_if<std::vector<double>>(&value))
    return std::all_of(list->begin(), list->end(), [](double d) { return std::isfinite(d); });
  return true;
}

/// `test` on a number or on each element of a list of numbers.
bool each_number(const OptionValue& value, const std::function<bool(double)>& test) {
  const auto all = [&](const auto& list) {
    return std::all_of(list.begin(), list.end(), [&](auto x) { return test(static_cast<double>(x)); });
  };
  if (const auto* i = std::get_if<int64_t>(&value)) return test(static_cast<double>(*i));
  if (const auto* d = std::get_if<double>(&value)) return test(*d);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) return all(*list);
  if (const auto* list = std::get_if<std::vector<double>>(&value)) return all(*list);
  return false;
}

std::string group_of(const std::string& key) { return key.substr(0, key.rfind('.') + 1); }  // with its dot
std::string name_of(const std::string& key) { return key.substr(key.rfind('.') + 1); }

/// The key of that name in another table, or the nearest one, or what the key's table has.
std::string hint(const std::vector<Option>& options, const std::string& key) {
  std::vector<std::string> keys, same_group;
  std::string near;
  for (const Option& option : options) {
    keys.push_back(option.key);
    if (group_of(option.key) == group_of(key)) same_group.push_back(name_of(option.key));
    if (near.empty() && name_of(option.key) == name_of(key)) near = option.key;
  }
  if (near.empty()) near = nearest_name(key, keys, std::max<size_t>(3, name_of(key).size() / 2) - 1);
  if (!near.empty()) return "; did you mean \"" + near + "\"?";
  if (group_of(key).empty() || same_group.empty()) return "";
  return fmt::format("; {}* has {}", group_of(key), fmt::join(same_group, ", "));
}

std::string unknown_key(const std::vector<Option>& options, const std::string& key) {
  return "unknown key \"" + key + "\"" + hint(options, key);
}

/// The name that was meant by the first text of `value` that is none of `names`.
std::string hint(const OptionValue& value, const std::vector<std::string>& names) {
  std::vector<std::string> typed;
  if (const auto* text = std::get_if<std::string>(&value)) typed = {*text};
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) typed = *list;
  for (const std::string& name : typed)
    if (std::find(names.begin(), names.end(), name) == names.end()) return did_you_mean(name, names);
  return "";
}

std::string print_table(const std::vector<Option>& options, bool with_help) {
  std::string top, groups, open_group;
  for (const Option& option : options) {
    const size_t dot = option.key.rfind('.');
    const std::string group = dot == std::string::npos ? "" : option.key.substr(0, dot);
    const std::string name = dot == std::string::npos ? option.key : option.key.substr(dot + 1);
    std::string& out = group.empty() ? top : groups;
    if (group != open_group && !group.empty()) out += "\n[" + group + "]\n", open_group = group;
    std::string line = name + " = " + to_toml(option.get());
    if (with_help)
      line +=
          "  # " + option.help + (option.constraint.text.empty() ? "" : " (" + option.constraint.text + ")");
    out += line + "\n";
  }
  return top + groups;
}

}  // namespace

Constraint anything() {
  return {"", [](const OptionValue&) { return true; }};
}
Constraint at_least(double low) {
  return {fmt::format(">= {:g}", low),
          [=](const OptionValue& v) { return each_number(v, [=](double x) { return x >= low; }); }};
}
Constraint greater_than(double low) {
  return {fmt::format("> {:g}", low),
          [=](const OptionValue& v) { return each_number(v, [=](double x) { return x > low; }); }};
}
Constraint between(double low, double high) {
  return {fmt::format("in [{:g}, {:g}]", low, high), [=](const OptionValue& v) {
            return each_number(v, [=](double x) { return x >= low && x <= high; });
          }};
}
Constraint half_open(double low, double high) {
  return {fmt::format("in [{:g}, {:g})", low, high), [=](const OptionValue& v) {
            return each_number(v, [=](double x) { return x >= low && x < high; });
          }};
}
Constraint one_of(std::vector<std::string> names) {
  const std::string text = fmt::format("one of {}", fmt::join(names, " | "));
  return {text,
          [names](const OptionValue& v) {
            const auto known = [&](const std::string& s) {
              return std::find(names.begin(), names.end(), s) != names.end();
            };
            if (const auto* s = std::get_if<std::string>(&v)) return known(*s);
            if (const auto* list = std::get_if<std::vector<std::string>>(&v))
              return std::all_of(list->begin(), list->end(), known);
            return false;
          },
          names};
}

Constraint distinct(Constraint each) {
  const std::string text = fmt::format("at least one, none twice, each {}", each.text);
  return {text,
          [each](const OptionValue& v) {
            const bool is_set = std::visit(
                [](const auto& list) {
                  using T = std::decay_t<decltype(list)>;
                  if constexpr (std::is_same_v<T, std::vector<int64_t>> ||
                                std::is_same_v<T, std::vector<double>> ||
                                std::is_same_v<T, std::vector<std::string>>) {
                    return !list.empty() && std::set(list.begin(), list.end()).size() == list.size();
                  } else {
                    return true;
                  }
                },
                v);
            return is_set && each.holds(v);
          },
          each.names};
}

size_t OptionView::place_of(const std::string& key) const {
  const size_t hash = std::hash<std::string>()(key);
  auto found = std::find(hashes_.begin(), hashes_.end(), hash);
  while (found != hashes_.end() && options_[static_cast<size_t>(found - hashes_.begin())].key != key)
    found = std::find(found + 1, hashes_.end(), hash);
  return static_cast<size_t>(found - hashes_.begin());
}

bool OptionView::has(const std::string& key) const { return place_of(key) < size(); }

const Option& OptionView::at(const std::string& key) const {
  const size_t place = place_of(key);
  if (place == size()) throw ConfigError(unknown_key(options_, key));
  return options_[place];
}

std::string OptionView::to_toml() const { return print_table(options_, false); }
std::string OptionView::to_toml_with_help() const { return print_table(options_, true); }

void OptionTable::group(const std::string& name, const std::function<void(OptionTable&)>& bind) {
  const std::string outer = prefix_;
  prefix_ += name + ".";
  bind(*this);
  prefix_ = outer;
}

void OptionTable::within(const OptionTraits& traits, const std::function<void(OptionTable&)>& bind) {
  const OptionTraits outer = traits_;
  traits_ = traits;
  bind(*this);
  traits_ = outer;
}

void OptionTable::watch(
    const std::function<void(OptionTable&)>& bind,
    const std::function<void(const std::string& name, const OptionValue& value)>& assigned) {
  const size_t first = options_.size();
  bind(*this);
  for (size_t i = first; i < options_.size(); ++i) {
    assign_[i] = [name = options_[i].key.substr(prefix_.size()), assigned,
                  assign = assign_[i]](const OptionValue& value) {
      assign(value);
      assigned(name, value);
    };
  }
}

OptionTraits& OptionTable::insert(Option option, Assign assign) {
  if (has(option.key)) throw std::logic_error("option bound twice: " + option.key);
  hashes_.push_back(std::hash<std::string>()(option.key));
  options_.push_back(std::move(option));
  assign_.push_back(std::move(assign));
  return options_.back().traits;
}

void OptionTable::set(const std::string& key, OptionValue value, const std::string& where) {
  const std::string prefix = where.empty() ? "" : where + ": ";
  const size_t place = place_of(key);
  if (place == size()) throw ConfigError(prefix + unknown_key(options_, key));
  const Option& option = options_[place];
  const OptionValue current = option.get();
  const std::optional<OptionValue> fitting = converted(value, current);
  if (!fitting)
    throw ConfigError(
        fmt::format("{}{} = {} should be {}", prefix, key, basin::to_toml(value), type_name(current)));
  if (!is_finite(*fitting))
    throw ConfigError(fmt::format("{}{} = {} is not finite", prefix, key, basin::to_toml(value)));
  if (!option.constraint.holds(*fitting))
    throw ConfigError(fmt::format("{}{} = {} violates {} {}{}", prefix, key, basin::to_toml(value), key,
                                  option.constraint.text, hint(*fitting, option.constraint.names)));
  assign_[place](*fitting);
}

void OptionTable::set_from_text(const std::string& text, const std::string& where) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw ConfigError(where + ": expected key=value, got \"" + text + "\"");
  const std::string key = text.substr(0, equals), value = text.substr(equals + 1);
  const bool wants_text = has(key) && std::holds_alternative<std::string>(at(key).get());
  const bool is_quoted = value.size() >= 2 && value.front() == '"' && value.back() == '"';
  if (wants_text && !is_quoted) return set(key, value, where);
  OptionValue parsed = value;  // what isn't TOML is a bare string; set() then says which type was wanted
  try {
    const TomlDocument document = parse_toml("v = " + value + "\n", where);
    if (document.entries.size() == 1) parsed = document.entries.front().value;
  } catch (const ConfigError&) {
    if (!value.empty() && value.front() == '[')
      throw ConfigError(where + ": cannot read \"" + value + "\" for " + key);
  }
  set(key, std::move(parsed), where);
}

void set_all(OptionTable& table, const std::vector<TomlEntry>& entries) {
  for (const TomlEntry& entry : entries) table.set(entry.key, entry.value, entry.where);
}

}  // namespace basin
