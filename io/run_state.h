// defines: RunState, the state of a run.
#pragma once

#include <string>

namespace basin {

/// In files as text, spelled like the value.
enum class RunState { queued, running, interrupted, finished, target_not_reached, diverged, failed };

const char* to_string(RunState state);
/// IoError naming `where`, the file, for any other text.
RunState parse_run_state(const std::string& text, const std::string& where);

/// finished, target_not_reached or diverged: nothing left to do for the run.
bool is_final(RunState state);

}  // namespace basin
