#include "apps/usage.h"

#include <CLI/CLI.hpp>

#include "core/error.h"
#include "core/nearest.h"

namespace basin {
namespace {

bool is_option(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string unknown_subcommand(const CLI::App& command, const std::string& typed) {
  const std::vector<std::string> known = subcommand_names(command);
  if (known.empty()) return fmt::format("\"{}\" has no subcommands", command.get_name());
  const std::string near = did_you_mean(typed, known);
  return fmt::format("unknown subcommand \"{}\"{}", typed,
                     near.empty() ? fmt::format("; known: {}", fmt::join(known, ", ")) : near);
}

std::string missing_subcommand(const CLI::App& command, const std::vector<std::string>& typed) {
  if (!typed.empty()) return unknown_subcommand(command, typed.front());
  return fmt::format("a subcommand is required: {}", fmt::join(subcommand_names(command), ", "));
}

std::string unexpected(const CLI::App& command, const std::string& word) {
  if (is_option(word)) {
    const std::string name = word.substr(0, word.find('='));
    return fmt::format("unknown option \"{}\"{}", name, did_you_mean(name, option_names(command)));
  }
  return fmt::format("\"{}\" was not expected{}", word,
                     word.find('=') == std::string::npos
                         ? "; lists are separated by commas without spaces: a,b"
                         : "; every key=value needs its own --set");
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

std::vector<std::string> subcommand_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* subcommand : command.get_subcommands([](const CLI::App*) { return true; })) {
    if (!subcommand->get_group().empty()) names.push_back(subcommand->get_name());  // workers' have none
  }
  return names;
}

const CLI::App& subcommand_of(const CLI::App& command, const std::string& name) {
  for (const CLI::App* subcommand : command.get_subcommands([](const CLI::App*) { return true; })) {
    if (subcommand->get_name() == name && !subcommand->get_group().empty()) return *subcommand;
  }
  throw ConfigError(unknown_subcommand(command, name));
}

std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  std::string name = app.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
  }
  const std::vector<std::string> typed = command->remaining();
  std::string text = first_line(error.what());
  if (command->get_require_subcommand_min() > 0 && (typed.empty() || !is_option(typed.front()))) {
    text = missing_subcommand(*command, typed);
  } else if (!typed.empty()) {
    text = unexpected(*command, typed.front());
  }
  return fmt::format("{} ({} --help)", text, name);
}

}  // namespace basin
