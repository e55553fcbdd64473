// defines: message_of(), what is said of a wrong setting.
#pragma once

#include <functional>
#include <string>

#include "core/error.h"

namespace basin::testing {

/// The message of the ConfigError, or other error, that `action` throws; "no error" where it throws none.
template <class E = ConfigError>
std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace basin::testing
