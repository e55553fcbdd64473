#include "io/quantity.h"

#include "io/enum_names.h"

namespace basin {
namespace {

const EnumNames<ProbeStatus>& status_names() {
  static const EnumNames<ProbeStatus> table("probe status", {{ProbeStatus::ok, "ok"},
                                                             {ProbeStatus::not_resolved, "not_resolved"},
                                                             {ProbeStatus::not_converged, "not_converged"},
                                                             {ProbeStatus::nonfinite, "nonfinite"},
                                                             {ProbeStatus::unavailable, "unavailable"},
                                                             {ProbeStatus::failed, "failed"}});
  return table;
}

const EnumNames<UncertaintyKind>& kind_names() {
  static const EnumNames<UncertaintyKind> table("kind of uncertainty",
                                                {{UncertaintyKind::none, "none"},
                                                 {UncertaintyKind::residual, "residual"},
                                                 {UncertaintyKind::eigenvalue_bound, "eigenvalue_bound"},
                                                 {UncertaintyKind::subspace_bound, "subspace_bound"},
                                                 {UncertaintyKind::standard_error, "standard_error"},
                                                 {UncertaintyKind::lower_bound, "lower_bound"}});
  return table;
}

}  // namespace

const char* to_string(ProbeStatus status) { return status_names().text(status); }

ProbeStatus parse_probe_status(const std::string& text, const std::string& where) {
  return status_names().value(text, where);
}

ProbeStatus gravest_status(const std::vector<ProbeStatus>& statuses) {
  return statuses.empty() ? ProbeStatus::ok : *std::max_element(statuses.begin(), statuses.end());
}

const char* to_string(UncertaintyKind kind) { return kind_names().text(kind); }

UncertaintyKind parse_uncertainty_kind(const std::string& text, const std::string& where) {
  return kind_names().value(text, where);
}

std::string entry_name(const std::string& quantity, bool is_vector, size_t index) {
  return is_vector ? fmt::format("{}_{}", quantity, index + 1) : quantity;
}

ProbeStatus gravest_status(const std::vector<Quantity>& quantities) {
  std::vector<ProbeStatus> statuses;
  for (const Quantity& quantity : quantities) statuses.push_back(quantity.status);
  return gravest_status(statuses);
}

}  // namespace basin
