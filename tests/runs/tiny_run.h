// defines: tiny_run(), options of a run that takes no time.
#pragma once

#include "study/run_options.h"

namespace basin::testing {

inline RunOptions tiny_run() {
  RunOptions options;
  options.model = "mlp";
  options.table().set_from_text("mlp.hidden=[6]", "test");
  options.data.set = "synthetic";
  options.data.train_examples = 100;
  options.data.test_examples = 30;
  options.train.protocol = "A-updates";
  options.train.updates = 12;
  options.train.batch_size = 20;
  options.train.checkpoint_every = 4;
  options.runtime.progress = false;
  options.runtime.threads = 1;
  return options;
}

}  // namespace basin::testing
