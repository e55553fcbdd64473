#include "trainers/lookahead.h"

#include "core/error.h"

namespace basin {

void check_lookahead(const TrainOptions& options, int64_t updates) {
  if (options.lookahead_every <= updates) return;
  throw ConfigError(
      fmt::format("lookahead_every = {} is more than the run's updates ({}): it would end where it began",
                  options.lookahead_every, updates));
}

Lookahead::Lookahead(const std::vector<ParameterInfo>& parameters, const TrainOptions& options,
                     int64_t updates)
    : every_(options.lookahead_every),
      updates_(updates),
      alpha_(options.lookahead_alpha),
      cubic_(options.lookahead_schedule == "cubic"),
      slow_(parameters, "slow copy") {
  check_lookahead(options, updates);
}

double Lookahead::step_at(int64_t t) const {
  if (!cubic_) return alpha_;
  return 1 - (1 - alpha_) * std::pow(static_cast<double>(t) / static_cast<double>(updates_), 3);
}

void Lookahead::synchronise(int64_t t) {
  const bool due = t % every_ == 0;
  if (due) slow_.approach(step_at(t));
  if (due || t == updates_) slow_.put_back();
}

}  // namespace basin
