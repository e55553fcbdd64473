#include "probes/common.h"

#include <fmt/format.h>

#include <algorithm>

namespace basin {

Quantity named(const QuantityNaming& naming, const std::string& uncertainty_kind) {
  Quantity q;
  q.name = naming.name;
  q.long_name = naming.long_name;
  q.definition = naming.definition;
  q.units = naming.units;
  q.uncertainty_kind = uncertainty_kind;
  return q;
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
