#include "trainers/hooks/lookahead.h"

#include "core/error.h"
#include "trainers/hooks/registry.h"

namespace basin {
namespace {

constexpr const char* kState = "slow_weights";

Constraint share_above_zero() {
  return {"in (0, 1]", [](const OptionValue& value) {
            const double share = std::get<double>(value);
            return share > 0 && share <= 1;
          }};
}

}  // namespace

void bind_options(OptionTable& table, LookaheadOptions& o) {
  table.add(
      "lookahead_every", o.every, at_least(0),
      "updates between Lookahead's synchronisations of the weights with the slow weights; 0: no Lookahead");
  table.add("lookahead_alpha", o.alpha, share_above_zero(),
            "Lookahead's step of the slow weights towards the weights");
  table.add("lookahead_schedule", o.schedule, one_of({"constant", "cubic"}),
            "Lookahead's step: lookahead_alpha, or 1 - (1 - lookahead_alpha) (t/T)^3 at update t of T");
}

void Lookahead::check(const Options& options, const HookCheck& run) {
  if (options.every > 0 && run.overlap > 0)  // its pairs would hold differences of other steps
    throw ConfigError("lookahead_every and an optimiser with overlap exclude each other");
  if (options.every > 0 && run.plan.shards)
    throw ConfigError("lookahead_every and parallel.shards exclude each other");
}

UpdatesNeeded Lookahead::updates_needed(const Options& options) {
  return {options.every, "lookahead_every", "it would end where it began"};
}

std::unique_ptr<UpdateHook> Lookahead::make(const Options& options, const HookSetup& setup) {
  if (options.every == 0) return nullptr;
  return std::make_unique<Lookahead>(setup.model.parameter_table(), options, setup.updates);
}

Lookahead::Lookahead(const std::vector<ParameterInfo>& parameters, const Options& options, int64_t updates)
    : every_(options.every),
      updates_(updates),
      alpha_(options.alpha),
      cubic_(options.schedule == "cubic"),
      slow_(parameters, "slow copy") {}

double Lookahead::step_at(int64_t t) const {
  if (!cubic_) return alpha_;
  return 1 - (1 - alpha_) * std::pow(static_cast<double>(t) / static_cast<double>(updates_), 3);
}

void Lookahead::after_update(int64_t t) {
  const bool due = t % every_ == 0;
  if (due) slow_.approach(step_at(t));
  if (due || t == updates_) slow_.put_back();
}

void Lookahead::save(Checkpoint& checkpoint) const { checkpoint.add_state(kState, slow_.state()); }
void Lookahead::restore(const Checkpoint& checkpoint) { slow_.load_state(checkpoint.state(kState)); }

HookEntry lookahead_hook() {
  return hook_entry<Lookahead>({
      .name = "lookahead",
      .help = "Lookahead: slow weights that the run's weights are reset to.",
      .on = {"lookahead_every=4"},
  });
}

}  // namespace basin
