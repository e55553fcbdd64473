// defines: distinguishing_keys() and arm_text(), what tells settings apart besides optimiser, batch size and protocol.
#pragma once

#include <string>
#include <vector>

#include "study/candidates.h"

namespace basin {

/// The options in which settings with the same optimiser, batch size and protocol differ, as few as tell all of them apart: an
/// option whose value follows from those three and the options before it is left out. Each setting has the three and whatever else
/// it may differ in but the seed and the learning rate, which tables show anyway. Options are taken in the order in which they
/// first appear, those of `first` before all others. O(settings x options).
std::vector<std::string> distinguishing_keys(const std::vector<Settings>& settings,
                                             const std::vector<std::string>& first = {});

/// The option's value for people, "–" where the setting has no such option.
std::string arm_text(const Settings& setting, const std::string& key);

/// A value without quotes.
std::string plain_text(const OptionValue& value);

}  // namespace basin
