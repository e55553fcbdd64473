#include "trainers/workers/stale_options.h"

#include "core/error.h"

namespace basin {

void bind_options(OptionTable& table, StaleGradientOptions& o) {
  table
      .add("mode", o.mode, one_of({"one", "ssp"}),
           "one: gradients are of the weights that they change; ssp: of those that a worker began with")
      .quiet_default();
  table.add("workers", o.workers, at_least(1), "workers that push gradients, each of batch_size examples")
      .quiet_default();
  table
      .add("bound", o.bound, at_least(-1),
           "steps that a worker may be ahead of the slowest (s); 0: bulk-synchronous, -1: no bound")
      .quiet_default();
  table
      .add("delays", o.delays, one_of({"constant", "exponential", "real", "recorded"}),
           "distribution of the time of a step; real: workers are processes, as many as ranks less one; "
           "recorded: arrivals are those of order")
      .quiet_default();
  table
      .add("order", o.order, anything(),
           "the run whose arrivals \"recorded\" makes again: conditions, or its run.h5 or folder")
      .quiet_default();
  table.add("order_path", o.order_path, anything(), "run.h5 of that order where it lies outside of the study")
      .execution()
      .quiet_default();
  table
      .add("order_setting", o.order_setting, anything(),
           "config_id of the run of that order; filled in by the study")
      .execution()
      .quiet_default();
  table.add("straggler", o.straggler, at_least(1), "the first worker's steps take so many times as long")
      .quiet_default();
}

void check_workers(const StaleGradientOptions& options) {
  if (options.on()) return;
  if (options.delays == "real" || options.delays == "recorded")
    throw ConfigError(fmt::format(
        "parallel.delays = \"{}\" needs parallel.mode = \"ssp\": with \"{}\" there are no workers",
        options.delays, options.mode));
  if (!options.order.empty())
    throw ConfigError(
        fmt::format("parallel.order = \"{}\" needs parallel.mode = \"ssp\": with \"{}\" there are no workers",
                    options.order, options.mode));
}

std::string needs_ranks(const StaleGradientOptions& options, int ranks) {
  return fmt::format("parallel.delays = \"real\" needs parallel.workers + 1 = {} ranks, not {}",
                     options.workers + 1, ranks);
}

}  // namespace basin
