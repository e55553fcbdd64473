// defines: noise_of(), the options of a run's example noise.
#pragma once

#include "tests/trainers/test_run.h"
#include "trainers/hooks/example_noise.h"

namespace basin::testing {

inline ExampleNoiseOptions& noise_of(RunSettings& s) { return s.train.hook<ExampleNoiseOptions>(); }

}  // namespace basin::testing
