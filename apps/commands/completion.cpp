#include <CLI/CLI.hpp>

#include "apps/arguments.h"
#include "apps/subcommands.h"
#include "apps/usage.h"

namespace basin {
namespace {

// What is typed at the cursor and what it belongs to; the words come from the tables that follow. Bash cuts words at "=";
// zsh, and a bash with other COMP_WORDBREAKS, does not.
const char kScript[] = R"(# Made by `basin completion`; what can be typed is what this build of basin knows.
_basin() {
  local current whole option value command words options kind candidate i lead="" candidates=""
  COMPREPLY=()
  current=${COMP_WORDS[COMP_CWORD]} whole=$current i=$((COMP_CWORD - 1))
  if [[ $current == "=" ]]; then
    current="" whole="${COMP_WORDS[i]}=" i=$((i - 1))
  elif [[ $i -gt 1 && ${COMP_WORDS[i]} == "=" ]]; then
    whole="${COMP_WORDS[i-1]}=$current" i=$((i - 2))
  fi
  option=${COMP_WORDS[i]} value=$whole
  if [[ $whole == --*=* ]]; then
    option=${whole%%=*} value=${whole#*=} lead="$option="
  fi
  command=basin
  for ((i = 1; i < COMP_CWORD; i++)); do
    _basin_is_command "$command ${COMP_WORDS[i]}" && command="$command ${COMP_WORDS[i]}"
  done
  _basin_words
  case $kind in
    subcommand) candidates=$words ;;
    option) candidates=$options ;;
    one) candidates=$words ;;
    list)
      [[ $value == *,* ]] && lead="$lead${value%,*},"
      candidates=$words ;;
    setting)
      for candidate in $words; do
        # Keys first; behind the "=" values.
        [[ $value == *=* && $candidate == *= || $value != *=* && $candidate != *= ]] && continue
        candidates="$candidates $candidate"
      done ;;
  esac
  for candidate in $candidates; do
    candidate=$lead$candidate
    [[ $candidate == "$whole"* ]] || continue
    [[ $current != "$whole" ]] && candidate=${candidate#"${whole%=*}="}
    [[ $candidate == *= ]] && type compopt > /dev/null 2>&1 && compopt -o nospace 2> /dev/null
    COMPREPLY+=("$candidate")
  done
}
)";

std::string quoted(const std::vector<std::string>& words) {
  return fmt::format("\"{}\"", fmt::join(words, " "));
}

const char* name_of(Offer how) {
  switch (how) {
    case Offer::one:
      return "one";
    case Offer::list:
      return "list";
    case Offer::setting:
      return "setting";
  }
  return "";
}

/// Subcommands in front of users, of any depth, each with the words that lead to it.
void collect(CLI::App& command, const std::string& path,
             std::vector<std::pair<std::string, CLI::App*>>& found) {
  found.emplace_back(path, &command);
  for (CLI::App* subcommand : command.get_subcommands([](CLI::App* s) { return !s->get_group().empty(); }))
    collect(*subcommand, path + " " + subcommand->get_name(), found);
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  return names;
}

/// kind=... words=... of an argument; a file's name, where nothing is offered.
std::string assignment(CLI::Option& option) {
  const std::optional<Offered> known = offered(option);
  return known ? fmt::format("kind={} words={}", name_of(known->how), quoted(known->words)) : "kind=\"file\"";
}

/// One case of _basin_words.
std::string case_of(CLI::App& command, const std::string& path) {
  std::vector<std::string> options;
  std::string with_values, positional = "kind=\"file\"";
  for (CLI::Option* option : command.get_options([](CLI::Option* o) { return !o->get_group().empty(); })) {
    const std::vector<std::string> names = names_of(*option);
    options.insert(options.end(), names.begin(), names.end());
    if (names.empty() && offered(*option)) positional = assignment(*option);
    if (!names.empty() && option->get_items_expected_max() > 0)
      with_values += fmt::format("        {}) {} ;;\n", fmt::join(names, "|"), assignment(*option));
  }
  const std::vector<std::string> subcommands = subcommand_names(command);
  if (!subcommands.empty()) positional = "kind=subcommand words=" + quoted(subcommands);
  return fmt::format(
      "    \"{}\")\n      options={}\n      case $option in\n{}        *) {} ;;\n      esac ;;\n", path,
      quoted(options), with_values, positional);
}

std::string script(CLI::App& app) {
  std::vector<std::pair<std::string, CLI::App*>> commands;
  collect(app, app.get_name(), commands);
  std::string paths, cases;
  for (const auto& [path, command] : commands) {
    paths += (paths.empty() ? "\"" : "|\"") + path + "\"";
    cases += case_of(*command, path);
  }
  return fmt::format(
      "{}_basin_is_command() {{\n  case $1 in\n    {}) return 0 ;;\n  esac\n  return 1\n}}\n"
      "_basin_words() {{\n  words=\"\" options=\"\" kind=\"file\"\n  case $command in\n{}  esac\n"
      "  if [[ $whole == -* && -z $lead ]]; then kind=option; fi\n}}\n",
      kScript, paths, cases);
}

/// In zsh by the layer that it has for bash's completions.
int completion(CLI::App& app, const std::string& shell) {
  const bool zsh = shell == "zsh";
  fmt::print("{}{}complete -o default -F _basin basin\n",
             zsh ? "#compdef basin\nautoload -U +X bashcompinit && bashcompinit\n" : "", script(app));
  // zsh reads a file of fpath at the first completion, in place of making one.
  if (zsh) fmt::print("[[ ${{funcstack[1]-}} != _basin ]] || _bash_complete -o default -F _basin\n");
  return 0;
}

}  // namespace

void add_completion(CLI::App& app, Action& action) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print what makes a shell complete basin's words");
  take_one_of(
      *command->add_option("SHELL", *shell, "whose script; docs/install.md says where it goes")->required(),
      "shell", {"bash", "zsh"});
  command->callback([&app, &action, shell] { action = [&app, shell] { return completion(app, *shell); }; });
}

}  // namespace basin
