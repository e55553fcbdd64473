#include "io/run_state.h"

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

}  // namespace basin
