#include "probes/common.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

namespace basin {

ProbeResult start_result(const std::string& probe, const ProbeContext& context) {
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

std::string short_scientific(double value) {
  std::string text = fmt::format("{:e}", value);  // 5.000000e-04
  const size_t e = text.find('e');
  std::string digits = text.substr(0, e);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return fmt::format("{}e{}", digits, std::stoi(text.substr(e + 1)));
}

std::string gravest_status(const std::vector<std::string>& statuses) {
  for (const char* status : {"nonfinite", "not_converged", "not_resolved"}) {
    if (std::find(statuses.begin(), statuses.end(), status) != statuses.end()) return status;
  }
  return "ok";
}

std::string gravest_status(const std::vector<Quantity>& quantities) {
  std::vector<std::string> statuses;
  for (const Quantity& quantity : quantities) statuses.push_back(quantity.status);
  return gravest_status(statuses);
}

}  // namespace basin
