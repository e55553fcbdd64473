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

void write_table(h5::File& file, const std::string& name, const std::string& long_name,
                 const std::string& scale, const std::vector<ColumnRow>& rows,
                 const std::function<Meaning(const std::string& column)>& meaning_of) {
  h5::Group group = file.create_group(name);
  group.set_attribute("long_name", long_name);
  std::vector<const ColumnRow*> pointers;
  for (const ColumnRow& row : rows) pointers.push_back(&row);
  std::vector<std::pair<std::string, std::vector<const OptionValue*>>> columns = gather_columns(pointers);
  const auto scale_at =
      std::find_if(columns.begin(), columns.end(), [&](const auto& c) { return c.first == scale; });
  std::rotate(columns.begin(), scale_at, scale_at + 1);
  h5::DataSet of_rows = write_column(group, scale, columns.front().second);
  describe(of_rows, meaning_of(scale));
  of_rows.make_scale(scale);
  for (size_t i = 1; i < columns.size(); ++i) {
    h5::DataSet data = write_column(group, columns[i].first, columns[i].second);
    describe(data, meaning_of(columns[i].first));
    data.attach_scale(0, of_rows);
  }
}

}  // namespace basin
