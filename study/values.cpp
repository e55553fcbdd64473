#include "study/values.h"

#include "core/error.h"
#include "study/run_options.h"

namespace basin {
namespace {

// The elements of a list, or the one value.
std::vector<OptionValue> elements(const OptionValue& value) {
  return std::visit(
      [](const auto& v) -> std::vector<OptionValue> {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::vector<int64_t>> || std::is_same_v<T, std::vector<double>> ||
                      std::is_same_v<T, std::vector<std::string>>) {
          return {v.begin(), v.end()};
        } else {
          return {v};
        }
      },
      value);
}

}  // namespace

bool is_list(const OptionValue& value) {
  return value.index() >= OptionValue(std::vector<int64_t>{}).index();
}

std::vector<OptionValue> checked_values(const std::string& key, const OptionValue& value,
                                        const std::string& where) {
  RunOptions scratch;
  OptionTable table = scratch.table();
  std::vector<OptionValue> checked;
  if (table.has(key) && is_list(table.at(key).get())) {
    throw ConfigError(
        fmt::format("{}: {} is itself a list, which can neither be swept nor be a condition", where, key));
  }
  for (const OptionValue& element : elements(value)) {
    table.set(key, element, where);
    checked.push_back(table.at(key).get());
  }
  if (checked.empty()) throw ConfigError(fmt::format("{}: {} = [] leaves nothing to run", where, key));
  return checked;
}

RateChoices checked_rates(const OptionValue& value, const std::string& where) {
  RateChoices rates;
  rates.tuned = value == OptionValue(std::string(kTuned));
  if (rates.tuned) return rates;
  for (const OptionValue& rate : checked_values(kRate, value, where))
    rates.values.push_back(std::get<double>(rate));
  return rates;
}

bool may_be_swept(const std::string& key) {
  const RunOptions scratch;
  const OptionView table = scratch.table();
  return !table.has(key) || table.at(key).traits.may_be_swept();
}

const std::string& repetition_key() {
  static const std::string key = [] {
    const RunOptions scratch;
    for (const Option& option : scratch.table())
      if (option.traits.is_repetition) return option.key;
    throw std::logic_error("no option tells repetitions apart");
  }();
  return key;
}

}  // namespace basin
