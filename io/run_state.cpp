#include "io/run_state.h"

#include "core/messages.h"
#include "io/enum_names.h"

namespace basin {
namespace {

const EnumNames<RunState>& names() {
  static const EnumNames<RunState> table("run status", {{RunState::queued, "queued"},
                                                        {RunState::running, "running"},
                                                        {RunState::interrupted, "interrupted"},
                                                        {RunState::finished, "finished"},
                                                        {RunState::target_not_reached, "target_not_reached"},
                                                        {RunState::diverged, "diverged"},
                                                        {RunState::failed, "failed"}});
  return table;
}

}  // namespace

const char* to_string(RunState state) { return names().text(state); }

RunState parse_run_state(const std::string& text, const std::string& where) {
  return names().value(text, where);
}

bool is_final(RunState state) {
  return state == RunState::finished || state == RunState::target_not_reached || state == RunState::diverged;
}

std::string in_colour(RunState state) {
  const std::string word = to_string(state);
  switch (state) {
    case RunState::finished:
      return in_colour(Colour::green, word);
    case RunState::target_not_reached:
      return in_colour(Colour::yellow, word);
    case RunState::diverged:
    case RunState::failed:
      return in_colour(Colour::red, word);
    default:
      return word;
  }
}

}  // namespace basin
