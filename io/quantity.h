// defines: Quantity, a number measured by a probe; ProbeStatus and
// UncertaintyKind, how far it can be trusted.
#pragma once

#include <string>
#include <vector>

namespace basin {

/// The status of a number or of a whole probe; each is graver than those before it. `unavailable`: it follows from
/// what this problem can't answer (hessian/problem.h). `failed`: the probe threw. In files as text, spelled like the
/// value; so are kinds of uncertainty.
enum class ProbeStatus { ok, not_resolved, not_converged, nonfinite, unavailable, failed };

const char* to_string(ProbeStatus status);
/// IoError naming `where`, the file, for any other text.
ProbeStatus parse_probe_status(const std::string& text, const std::string& where);
/// ok where there are none.
ProbeStatus gravest_status(const std::vector<ProbeStatus>& statuses);

/// What an uncertainty is: a residual |Hv - lambda v|; a bound on an eigenvalue's error, or on an overlap of
/// subspaces; a standard error; the spread of a search whose value is a lower bound. None where the number is exact.
enum class UncertaintyKind { none, residual, eigenvalue_bound, subspace_bound, standard_error, lower_bound };

const char* to_string(UncertaintyKind kind);
UncertaintyKind parse_uncertainty_kind(const std::string& text, const std::string& where);

/// One number (or vector of numbers) with its uncertainty. Never a sentinel: NaN and a status.
struct Quantity {
  std::string name;        // "lambda_1", "phi_full_1e-3", "b_simple"
  std::string definition;  // anchor in docs/: "keskar-phi-full"
  std::string units;       // "loss/weight^2", "examples", "1"
  std::string long_name;
  UncertaintyKind uncertainty_kind = UncertaintyKind::none;
  ProbeStatus status = ProbeStatus::ok;  // of a vector the gravest
  std::vector<double> value;
  std::vector<double> uncertainty;                // same length; what it is stands in uncertainty_kind
  std::vector<double> ci_low = {}, ci_high = {};  // empty, or 95 % interval, same length
  std::vector<ProbeStatus> entry_status = {};     // of a vector, by entry; empty: all as `status`
  bool is_vector = false;  // named <name>_1, <name>_2, ... in tables, also with one entry

  ProbeStatus status_of(size_t entry) const { return entry_status.empty() ? status : entry_status.at(entry); }
};

/// What tables call entry `index` (from 0) of a quantity: <name>_1, ... of a vector, else the name.
std::string entry_name(const std::string& quantity, bool is_vector, size_t index);

ProbeStatus gravest_status(const std::vector<Quantity>& quantities);

}  // namespace basin
