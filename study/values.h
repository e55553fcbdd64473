// defines: values in a study file: checked_values(), RateChoices and checked_rates(), is_list(),
// may_be_swept(), repetition_key().
#pragma once

#include <string>
#include <vector>

#include "core/options.h"

namespace basin {

inline constexpr const char* kRate = "learning_rate";
inline constexpr const char* kTuned = "tuned";  // the learning rate that [tune] or a selection gives

bool is_list(const OptionValue& value);

/// The elements of a list, or the one value, each as the option's own type, type and range checked.
std::vector<OptionValue> checked_values(const std::string& key, const OptionValue& value,
                                        const std::string& where);

/// What learning_rate is said to be: values in turn, or "tuned".
struct RateChoices {
  std::vector<double> values;
  bool tuned = false;
};
RateChoices checked_rates(const OptionValue& value, const std::string& where);

/// Keys outside a run's identity can't be swept: the cells would be the same run. True of unknown ones, which are refused as such.
bool may_be_swept(const std::string& key);

/// The key of the option that tells the repetitions of one setting apart: `seed`.
const std::string& repetition_key();

}  // namespace basin
