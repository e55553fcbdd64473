// defines: in_child, for work that may crash or never end.
#pragma once

#include <functional>
#include <string>

namespace basin {

/// Runs `work` in a forked copy of this process and returns what it returns. A crash of `work`, more than `seconds` or a
/// DamagedError of its own is a DamagedError "WHAT: ..." here; any other exception an IoError. The copy has this thread alone, so
/// `work` starts no parallel work; it writes nothing that this process waits to write.
std::string in_child(const std::string& what, double seconds, const std::function<std::string()>& work);

}  // namespace basin
