// defines: study_of(), a study from text instead of a file; study_message().
#pragma once

#include <string>
#include <vector>

#include "study/study.h"
#include "tests/support/message_of.h"

namespace basin::testing {

inline Study study_of(const std::string& text, const std::vector<std::string>& sets = {}) {
  return parse_study(text, "s.toml", sets);
}

/// What is said of the study when its cells are listed: message_of().
inline std::string study_message(const std::string& text, const std::vector<std::string>& sets = {}) {
  return message_of([&] { expand(study_of(text, sets)); });
}

}  // namespace basin::testing
