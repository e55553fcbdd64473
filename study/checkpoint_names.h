// defines: how a plan names checkpoints: words, labels of levels and updates, and which of them a run can have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainers/train_options.h"

namespace basin {

/// What stands for checkpoints in a plan's `at`, besides their labels: those that every run has, and several at once.
const std::vector<std::string>& checkpoint_words();

/// The update of one of those that train.checkpoint_every keeps: 400 of u000400; 0 for other labels.
int64_t cadence_update(const std::string& label);
inline bool is_cadence(const std::string& label) { return cadence_update(label) > 0; }

/// Whether such a run can have a checkpoint of this label. Where loss ends it, any update can be reached.
bool can_keep(const TrainOptions& train, const std::string& label);

/// ConfigError for a name in probes.at that no checkpoint of such a run can have, and for a word that would find none.
void check_probed_at(const std::vector<std::string>& at, const TrainOptions& train);

}  // namespace basin
