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

/// Its word for a line on stderr: green where the run came to its end, yellow where it missed its target, red where it was
/// lost.
std::string in_colour(RunState state);

}  // namespace basin
