#include "probes/probe.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "core/clock.h"

namespace basin {
namespace {

ProbeResult empty_result(const std::string& probe, const ProbeContext& context) {
  const Problem& problem = context.problem;
  ProbeResult result;
  result.probe = probe;
  const std::string dtype = problem.dtype() == at::kDouble ? "float64" : "float32";
  result.attributes = {{"n_examples", problem.examples()},
                       {"train_examples", context.train_examples},
                       {"set", context.set},
                       {"subset_hash", context.subset_hash},
                       {"seed", fmt::format("{}", context.seed)},  // as text: 64 bits without a sign
                       {"dtype", dtype},
                       {"device", problem.device().str()},
                       {"bn_mode", problem.batch_norm_mode()},
                       {"micro_batch", problem.micro_batch()},
                       {"parameters", problem.parameters().size()},
                       {"weight_norm", problem.parameters().gather().to(at::kDouble).norm().item<double>()}};
  return result;
}

}  // namespace

Objective& ProbeContext::network() const {
  Objective* network = problem.network();
  if (!network) throw Unanswered({Answer::logits});
  return *network;
}

ProbeResult Probe::run(const ProbeContext& context) {
  const Clock::time_point start = Clock::now();
  ProbeResult result = empty_result(name_, context);
  const std::vector<Answer> missing = missing_answers(needs(), context.problem);
  if (missing.empty()) {
    measure(context, result);
  } else {
    result.status = ProbeStatus::unavailable;
    result.message = Unanswered(missing).what();
  }
  result.seconds = seconds_since(start);
  return result;
}

}  // namespace basin
