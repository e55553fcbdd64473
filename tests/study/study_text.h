// defines: study_of(), a study from text instead of a file.
#pragma once

#include <string>
#include <vector>

#include "study/study.h"

namespace basin::testing {

inline Study study_of(const std::string& text, const std::vector<std::string>& sets = {}) {
  return parse_study(text, "s.toml", sets);
}

}  // namespace basin::testing
