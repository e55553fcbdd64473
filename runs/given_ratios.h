// defines: with_given_ratios(), the trust ratios that a run has from another run of its study.
#pragma once

#include <string>

#include "study/run_options.h"

namespace basin {

/// The options with trust_ratios filled in where a frozen arm's trust_from names a run: from FOLDER/config.toml where an earlier attempt
/// left them there, so that a run goes on without that run's files, else its mean ratios (study/trust_ratios.h) from the folder next to
/// this one. The run_id stays. IoError where that run has no record yet; ConfigError where it diverged or has no ratios, and where
/// the options bring ratios that are others.
RunOptions with_given_ratios(RunOptions options, const std::string& folder);

}  // namespace basin
