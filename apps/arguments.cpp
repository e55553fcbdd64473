#include "apps/arguments.h"

#include <CLI/CLI.hpp>

#include <sstream>

#include "core/nearest.h"
#include "study/run_options.h"

namespace basin {
namespace {

const char kOffered[] = "offered";

/// Its description has a line that says how words are typed, then a line for each word. Inactive, so neither help nor parsing sees it: a
/// place at the option itself for what CLI11 has no field for.
struct OfferedWords : CLI::Validator {
  OfferedWords(Offer how, Words words) {
    desc_function_ = [how, words = std::move(words)] {
      return fmt::format("{}\n{}", static_cast<int>(how), fmt::join(words(), "\n"));
    };
    name(kOffered);
    active(false);
  }
};

/// CLI11's own checks name the largest number that there is, in 309 digits.
void take_numbers(CLI::Option& option, const char* which, bool (*takes)(double)) {
  option.check([which, takes](const std::string& typed) {
    double number = 0;
    const bool good = CLI::detail::lexical_cast(typed, number) && takes(number);
    return good ? std::string() : fmt::format("\"{}\" is no number {}", typed, which);
  });
}

}  // namespace

void offer(CLI::Option& option, Offer how, Words words) { option.check(OfferedWords(how, std::move(words))); }

std::optional<Offered> offered(CLI::Option& option) {
  try {
    CLI::Validator words = *option.get_validator(kOffered);
    std::istringstream lines(words.active().get_description());
    std::string line;
    std::getline(lines, line);
    Offered found{static_cast<Offer>(std::stoi(line)), {}};
    while (std::getline(lines, line)) found.words.push_back(line);
    return found;
  } catch (const CLI::OptionNotFound&) {
    return std::nullopt;
  }
}

void take_one_of(CLI::Option& option, const std::string& what, const std::vector<std::string>& names) {
  const auto fault = [what, names](const std::string& typed) {
    const bool known = std::find(names.begin(), names.end(), typed) != names.end();
    return known ? std::string() : unknown_name(what, typed, names);
  };
  option.check(fault, fmt::format("{{{}}}", fmt::join(names, ",")));
  offer(option, Offer::one, [names] { return names; });
}

void take_above_zero(CLI::Option& option) {
  take_numbers(option, "above 0", [](double number) { return number > 0; });
}

void take_at_least_zero(CLI::Option& option) {
  take_numbers(option, "of at least 0", [](double number) { return number >= 0; });
}

std::vector<std::string> settings_of(const OptionView& options) {
  std::vector<std::string> words;
  for (const Option& option : options) {
    words.push_back(option.key + "=");
    std::vector<std::string> values = option.constraint.names;
    if (std::holds_alternative<bool>(option.get())) values = {"true", "false"};
    for (const std::string& value : values) words.push_back(option.key + "=" + value);
  }
  return words;
}

std::vector<std::string> run_settings() {
  const RunOptions defaults;
  return settings_of(defaults.table());
}

std::vector<std::string> values_of(const std::string& key) {
  const RunOptions defaults;
  return defaults.table().at(key).constraint.names;
}

void add_ranks_option(CLI::App& command, int& ranks) {
  command
      .add_option("--ranks", ranks,
                  "processes on this machine that share the work; default 1. Those of torchrun, mpirun or "
                  "srun share it without being asked")
      ->check(CLI::Range(1, 4096));
}

void add_set_option(CLI::App& command, std::vector<std::string>& sets, Words settings) {
  CLI::Option* const option =
      command
          .add_option("--set", sets, "key=value in TOML syntax, e.g. --set lamb.beta1=0.9; may be repeated")
          ->allow_extra_args(false)
          ->type_name("KEY=VALUE");
  offer(*option, Offer::setting, std::move(settings));
}

void add_list_option(CLI::App& command, const std::string& name, std::vector<std::string>& values,
                     const std::string& help, Words known) {
  const auto split = [&values](const std::string& text) {
    std::istringstream elements(text);
    for (std::string element; std::getline(elements, element, ',');) values.push_back(element);
  };
  CLI::Option* const option =
      command.add_option_function<std::string>(name, split, help)->join(',')->type_name("A[,B...]");
  offer(*option, Offer::list, std::move(known));
}

}  // namespace basin
