#include "study/arms.h"

#include "study/values.h"

namespace basin {
namespace {

const OptionValue* value_of(const Settings& setting, const std::string& key) {
  for (const auto& [name, value] : setting)
    if (name == key) return &value;
  return nullptr;
}

// By option, in the order of appearance: which of its values each setting has, 0 where it has none.
std::vector<std::pair<std::string, std::vector<size_t>>> value_numbers(
    const std::vector<Settings>& settings, const std::vector<std::string>& first) {
  std::vector<std::pair<std::string, std::vector<size_t>>> columns;
  std::map<std::string, size_t> places;
  std::vector<std::map<std::string, size_t>> numbers;
  const auto place_of = [&](const std::string& key) {
    const auto [place, is_new] = places.emplace(key, columns.size());
    if (is_new) {
      columns.emplace_back(key, std::vector<size_t>(settings.size(), 0));
      numbers.emplace_back();
    }
    return place->second;
  };
  for (const char* key : {"optimizer", "batch_size", "protocol"}) place_of(key);
  for (const std::string& key : first) place_of(key);
  for (size_t i = 0; i < settings.size(); ++i) {
    for (const auto& [key, value] : settings[i]) {
      const size_t place = place_of(key);
      std::map<std::string, size_t>& known = numbers[place];
      columns[place].second[i] = known.emplace(to_toml(value), known.size() + 1).first->second;
    }
  }
  return columns;
}

}  // namespace

std::vector<std::string> distinguishing_keys(const std::vector<Settings>& settings,
                                             const std::vector<std::string>& first) {
  constexpr size_t kShown = 3;
  std::vector<std::string> keys;
  std::vector<size_t> classes(settings.size(), 0);  // equal for settings that are the same so far
  size_t count = settings.empty() ? 0 : 1, place = 0;
  for (const auto& [key, values] : value_numbers(settings, first)) {
    std::map<std::pair<size_t, size_t>, size_t> finer;
    std::vector<size_t> next;
    for (size_t i = 0; i < settings.size(); ++i)
      next.push_back(finer.emplace(std::pair(classes[i], values[i]), finer.size()).first->second);
    if (finer.size() > count && place >= kShown) keys.push_back(key);
    classes = std::move(next);
    count = finer.size();
    ++place;
  }
  return keys;
}

std::string plain_text(const OptionValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text ? *text : to_toml(value);
}

std::string arm_text(const Settings& setting, const std::string& key) {
  const OptionValue* value = value_of(setting, key);
  return value ? plain_text(*value) : "–";
}

}  // namespace basin
