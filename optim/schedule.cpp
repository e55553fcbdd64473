#include "optim/schedule.h"

#include "core/error.h"
#include "optim/scaling_rule.h"

namespace basin {

namespace {

constexpr double pi = 3.14159265358979323846;
constexpr double kNever = 9007199254740992.0;  // 2^53 updates: as good as any position beyond

bool decays(const ScheduleOptions& options) {
  return options.schedule == "cosine" || options.schedule == "polynomial";
}

/// A position in the options' unit, in updates.
double updates_of(double position, const ScheduleOptions& options, const RunShape& shape) {
  if (options.schedule_unit == "updates") return position;
  return position *
         (options.schedule_unit == "epochs" ? shape.updates_an_epoch : static_cast<double>(shape.updates));
}

int64_t whole_updates(double position, const ScheduleOptions& options, const RunShape& shape) {
  return std::llround(std::min(kNever, updates_of(position, options, shape)));
}

void check_shares(const ScheduleOptions& options) {
  for (const Option& option : view_of(options)) {
    if (!option.traits.is_within_run) continue;
    const OptionValue value = option.get();
    const auto* const single = std::get_if<double>(&value);
    for (const double share : single ? std::vector<double>{*single} : std::get<std::vector<double>>(value)) {
      if (share <= 1) continue;
      throw ConfigError(fmt::format(
          "{} = {:g} violates {} in [0, 1]: schedule_unit = \"share\" counts in shares of all updates",
          option.key, share, option.key));
    }
  }
}

// A table gives the rate and the warm-up, in epochs. The study says 1 of each, so that no number stands there
// without effect.
void check_published(const ScheduleOptions& options, double learning_rate) {
  if (learning_rate == 1 && options.warmup == 1 && options.schedule_unit == "epochs" &&
      options.warmup_rule == "none" && options.warmup_from == "zero")
    return;
  throw ConfigError(
      fmt::format("scaling_rule = \"{}\" sets rate and warm-up itself: learning_rate = {:g} and warmup = "
                  "{:g} must be 1, "
                  "schedule_unit \"epochs\", warmup_rule \"none\" and warmup_from \"zero\"",
                  options.scaling_rule, learning_rate, options.warmup));
}

}  // namespace

void bind_options(OptionTable& table, ScheduleOptions& options) {
  table.add("schedule", options.schedule, one_of({"constant", "cosine", "polynomial", "step"}),
            "learning rate after the warm-up");
  table.add("schedule_unit", options.schedule_unit, one_of({"share", "epochs", "updates"}),
            "unit of warmup, horizon and milestones: shares of all updates, epochs or updates");
  table.add("warmup", options.warmup, at_least(0), "end of the linear warm-up; 0: no warm-up").within_run();
  table.add("warmup_rule", options.warmup_rule, one_of({"none", "linear"}),
            "linear: the warm-up grows with batch_size, from base_batch");
  table.add("warmup_from", options.warmup_from, one_of({"zero", "base"}),
            "learning rate at the start of the warm-up: 0, or the rate at base_batch");
  table.add("power", options.power, greater_than(0), "polynomial: (1 - t/T)^power");
  table.add("final_factor", options.final_factor, between(0, 1),
            "cosine, polynomial: learning rate at the end, as a share of the peak");
  table.add("horizon", options.horizon, at_least(0),
            "cosine, polynomial: where the decay ends, from the run's start; 0: at the end of the run");
  table.add("milestones", options.milestones, at_least(0), "step: where the learning rate drops")
      .within_run();
  table.add("step_factor", options.step_factor, greater_than(0),
            "step: factor on the learning rate at each milestone");
  table.add("scaling_rule", options.scaling_rule, one_of(scaling_rules()),
            "how learning_rate grows with batch_size; power: as its scaling_power-th power; malladi: Adam's "
            "betas and eps as well; mlperf, torchlars, tpu: published rates and warm-ups");
  table
      .add("scaling_power", options.scaling_power, between(0, 1),
           "scaling_rule = \"power\": learning_rate x (batch_size / base_batch)^scaling_power")
      .quiet_default();
  table
      .add("beta2_rule", options.beta2_rule, one_of({"none", "half_life"}),
           "half_life: beta2^(batch_size / base_batch), the same half-life of second moments in examples")
      .quiet_default();
  table
      .add("decay_rule", options.decay_rule, one_of({"none", "linear"}),
           "linear: weight_decay x batch_size / base_batch, the same decay per example at one learning rate")
      .quiet_default();
  table.add("base_batch", options.base_batch, at_least(1), "batch size at which learning_rate holds")
      .yardstick();
  table.add("effective_rate", options.effective_rate, anything(),
            "learning_rate is the effective rate: with momentum m the optimiser uses (1 - m) times it");
}

void check_schedule(const ScheduleOptions& options, double learning_rate, int64_t batch_size) {
  if (is_published(options.scaling_rule)) check_published(options, learning_rate);
  rate_factor(options, batch_size);  // refuses a batch size that a table doesn't state
  if (options.schedule_unit == "share") check_shares(options);
  const double warmup = warmup_at(options, batch_size);
  if (decays(options) && options.horizon > 0 && options.horizon <= warmup) {
    throw ConfigError(
        fmt::format("horizon = {:g} must lie past the warm-up, which ends at {:g} (schedule_unit = \"{}\")",
                    options.horizon, warmup, options.schedule_unit));
  }
}

RateSchedule::RateSchedule(const ScheduleOptions& options, double learning_rate, double gain,
                           const RunShape& shape)
    : options_(options), updates_(shape.updates) {
  check_schedule(options, learning_rate, shape.batch_size);
  const double rule = rate_factor(options, shape.batch_size);
  peak_ = learning_rate * rule;
  if (options.effective_rate) peak_ /= gain;
  warmup_ = whole_updates(warmup_at(options, shape.batch_size), options, shape);
  start_ = options.warmup_from == "base" ? std::min(1.0, 1 / rule) : 0.0;
  const double total = static_cast<double>(updates_);
  horizon_ = decays(options) && options.horizon > 0 ? updates_of(options.horizon, options, shape) : total;
  if (options.final_factor == 0 && horizon_ <= total - 1) {
    throw ConfigError(
        fmt::format("horizon = {:g} lies at update {:g} of {}: with final_factor = 0 the last updates would "
                    "have learning rate 0",
                    options.horizon, horizon_, updates_));
  }
  for (const double milestone : options.milestones)
    milestones_.push_back(whole_updates(milestone, options, shape));
}

double RateSchedule::factor(int64_t update) const {
  TORCH_CHECK(0 <= update && update < updates_, "update ", update, " of ", updates_);
  if (update >= warmup_) return decay(update);
  return start_ + (1 - start_) * (static_cast<double>(update + 1) / static_cast<double>(warmup_));
}

double RateSchedule::decay(int64_t update) const {
  const double length = horizon_ - static_cast<double>(warmup_);
  const double s = length > 0 ? std::min(1.0, static_cast<double>(update - warmup_) / length) : 1.0;
  const double span = 1 - options_.final_factor;
  if (options_.schedule == "constant") return 1;
  if (options_.schedule == "cosine") return options_.final_factor + span * (1 + std::cos(pi * s)) / 2;
  if (options_.schedule == "polynomial")
    return options_.final_factor + span * std::pow(1 - s, options_.power);
  if (options_.schedule == "step") {
    const auto passed = std::count_if(milestones_.begin(), milestones_.end(),
                                      [&](int64_t milestone) { return milestone <= update; });
    return std::pow(options_.step_factor, static_cast<double>(passed));
  }
  throw ConfigError("unknown schedule \"" + options_.schedule +
                    "\"; known: constant, cosine, polynomial, step");
}

}  // namespace basin
