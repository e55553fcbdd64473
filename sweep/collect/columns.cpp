#include "sweep/collect/columns.h"

namespace basin {

void describe(h5::Object& object, const Meaning& meaning) {
  object.set_attribute("units", meaning.units);
  object.set_attribute("long_name", meaning.long_name);
  object.set_attribute("definition", meaning.definition);
}

Meanings with_run_meanings(Meanings own) {
  own.merge(Meanings{
      {"run_id", {"", "name of the run: 12 hex digits of its configuration's hash", "run-id"}},
      {"status", {"", "where the run stands", "run-status"}},
      {"gradients", {"examples", "image gradients computed", "gradients"}},
      {"validation_loss", {"nat", "validation loss", "eval-loss"}},
      {"overshot", {"", "final training loss below 0.8 x target", "overshot"}},
  });
  return own;
}

h5::DataSet write_column(h5::Group& group, const std::string& name,
                         const std::vector<const OptionValue*>& present) {
  bool whole = true, all_int = true, all_bool = true, numeric = true;
  for (const OptionValue* value : present) {
    whole &= value != nullptr;
    if (!value) continue;
    const bool is_bool = std::holds_alternative<bool>(*value),
               is_int = std::holds_alternative<int64_t>(*value);
    all_bool &= is_bool;
    all_int &= is_int;
    numeric &= is_bool || is_int || std::holds_alternative<double>(*value);
  }
  if (!numeric) {  // a list is its TOML text, so that a column holds one kind of thing
    std::vector<std::string> texts;
    for (const OptionValue* value : present) {
      const std::string* text = value ? std::get_if<std::string>(value) : nullptr;
      texts.push_back(text ? *text : value ? to_toml(*value) : std::string());
    }
    return group.write_texts(name, texts);
  }
  if (whole && all_bool) {
    std::vector<uint8_t> flags;
    for (const OptionValue* value : present) flags.push_back(std::get<bool>(*value));
    h5::DataSet data = group.write(name, flags);
    data.set_attribute("type", std::string("bool"));
    return data;
  }
  if (whole && all_int) {
    std::vector<int64_t> numbers;
    for (const OptionValue* value : present) numbers.push_back(std::get<int64_t>(*value));
    return group.write(name, numbers);
  }
  std::vector<double> numbers;
  for (const OptionValue* value : present) {
    double number = NAN;
    if (value) {
      number = std::visit(
          [](const auto& v) -> double {
            if constexpr (std::is_arithmetic_v<std::decay_t<decltype(v)>>) return static_cast<double>(v);
            return NAN;
          },
          *value);
    }
    numbers.push_back(number);
  }
  return group.write(name, numbers);
}

std::vector<std::pair<std::string, std::vector<const OptionValue*>>> gather_columns(
    const std::vector<const ColumnRow*>& rows) {
  std::vector<std::pair<std::string, std::vector<const OptionValue*>>> columns;
  std::map<std::string, size_t> places;
  for (size_t row = 0; row < rows.size(); ++row) {
    for (const auto& [name, value] : *rows[row]) {
      const auto [place, is_new] = places.emplace(name, columns.size());
      if (is_new) columns.push_back({name, std::vector<const OptionValue*>(rows.size(), nullptr)});
      columns[place->second].second[row] = &value;
    }
  }
  return columns;
}

}  // namespace basin
