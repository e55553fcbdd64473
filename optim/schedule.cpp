#include "optim/schedule.h"

#include "core/error.h"

namespace basin {

namespace {

constexpr double pi = 3.14159265358979323846;

int64_t updates_in(double share, int64_t total) { return std::llround(share * static_cast<double>(total)); }

}  // namespace

void bind_options(OptionTable& table, ScheduleOptions& options) {
  table.add("schedule", options.schedule, one_of({"constant", "cosine", "polynomial", "step"}),
            "course of the learning rate after the warm-up");
  table.add("warmup", options.warmup, between(0, 1),
            "share of all updates over which the learning rate rises linearly");
  table.add("power", options.power, greater_than(0), "polynomial: (1 - t/T)^power");
  table.add("final_factor", options.final_factor, between(0, 1),
            "cosine, polynomial: share of the peak at the end");
  table.add("milestones", options.milestones, between(0, 1),
            "step: where the rate falls, as shares of all updates");
  table.add("step_factor", options.step_factor, greater_than(0),
            "step: factor on the rate at each milestone");
  table.add("scaling_rule", options.scaling_rule, one_of({"none", "linear", "sqrt"}),
            "how learning_rate grows with batch_size");
  table.add("base_batch", options.base_batch, at_least(1), "batch size at which learning_rate holds");
}

double scaled_learning_rate(const ScheduleOptions& options, double learning_rate, int64_t batch_size) {
  const double ratio = static_cast<double>(batch_size) / static_cast<double>(options.base_batch);
  if (options.scaling_rule == "none") return learning_rate;
  if (options.scaling_rule == "linear") return learning_rate * ratio;
  if (options.scaling_rule == "sqrt") return learning_rate * std::sqrt(ratio);
  throw ConfigError("unknown scaling_rule \"" + options.scaling_rule + "\"; known: none, linear, sqrt");
}

double schedule_factor(const ScheduleOptions& options, int64_t update, int64_t total_updates) {
  TORCH_CHECK(0 <= update && update < total_updates, "update ", update, " of ", total_updates);
  const int64_t warmup = updates_in(options.warmup, total_updates);
  if (update < warmup) return static_cast<double>(update + 1) / static_cast<double>(warmup);

  const double s = static_cast<double>(update - warmup) / static_cast<double>(total_updates - warmup);
  const double span = 1 - options.final_factor;
  if (options.schedule == "constant") return 1;
  if (options.schedule == "cosine") return options.final_factor + span * (1 + std::cos(pi * s)) / 2;
  if (options.schedule == "polynomial") return options.final_factor + span * std::pow(1 - s, options.power);
  if (options.schedule == "step") {
    const auto passed =
        std::count_if(options.milestones.begin(), options.milestones.end(),
                      [&](double milestone) { return updates_in(milestone, total_updates) <= update; });
    return std::pow(options.step_factor, static_cast<double>(passed));
  }
  throw ConfigError("unknown schedule \"" + options.schedule +
                    "\"; known: constant, cosine, polynomial, step");
}

}  // namespace basin
