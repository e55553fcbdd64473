// defines: helpers for the argument lists of subcommands, and the words that completion offers for an argument.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/options.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace basin {

/// How the words of an argument are typed: one of them; several with commas; KEY=VALUE, where a word is either "key=" or
/// "key=value" for each value of a fixed set.
enum class Offer { one, list, setting };

/// Words that can be said for an argument. Looked up when they are asked for.
struct Offered {
  Offer how = Offer::one;
  std::vector<std::string> words;
};
using Words = std::function<std::vector<std::string>()>;

/// Notes what can be said; nothing is checked.
void offer(CLI::Option& option, Offer how, Words words);
std::optional<Offered> offered(CLI::Option& option);

/// Takes one of `names` alone, and offers them. Another is an error with the nearest of them, and all.
void take_one_of(CLI::Option& option, const std::string& what, const std::vector<std::string>& names);

/// Takes such numbers alone; another is an error in words.
void take_above_zero(CLI::Option& option);
void take_at_least_zero(CLI::Option& option);

/// "key=" for each option, and "key=value" where there is a fixed set of values.
std::vector<std::string> settings_of(const OptionView& options);
/// Those of a study's run.
std::vector<std::string> run_settings();
/// The fixed set of values of one of its options.
std::vector<std::string> values_of(const std::string& key);

/// `--set key=value`, one value per occurrence.
void add_set_option(CLI::App& command, std::vector<std::string>& sets, Words settings = run_settings);

/// `--ranks N`.
void add_ranks_option(CLI::App& command, int& ranks);

/// `NAME A[,B...]`: one comma-separated list per occurrence; later occurrences add to it. What follows a
/// space is another argument.
void add_list_option(CLI::App& command, const std::string& name, std::vector<std::string>& values,
                     const std::string& help, Words known);

}  // namespace basin
