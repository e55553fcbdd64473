#include "probes/probe.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "core/clock.h"

namespace basin {
namespace {

ProbeResult empty_result(const std::string& probe, const ProbeContext& context) {
  Objective& objective = context.objective;
  ProbeResult result;
  result.probe = probe;
  const std::string dtype = objective.dtype() == at::kDouble ? "float64" : "float32";
  result.attributes = {
      {"n_examples", objective.examples()},
      {"train_examples", context.train_examples},
      {"set", context.set},
      {"subset_hash", context.subset_hash},
      {"seed", fmt::format("{}", context.seed)},  // as text: 64 bits without a sign
      {"dtype", dtype},
      {"device", objective.device().str()},
      {"bn_mode", std::string(objective.model().has_batch_statistics() ? "running" : "none")},
      {"micro_batch", objective.micro_batch()},
      {"parameters", objective.parameters().size()},
      {"weight_norm", objective.parameters().gather().to(at::kDouble).norm().item<double>()}};
  return result;
}

}  // namespace

ProbeResult Probe::run(const ProbeContext& context) {
  const Clock::time_point start = Clock::now();
  ProbeResult result = empty_result(name_, context);
  measure(context, result);
  result.seconds = seconds_since(start);
  return result;
}

}  // namespace basin
