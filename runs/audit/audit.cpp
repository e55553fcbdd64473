#include "runs/audit/audit.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/progress.h"
#include "core/provenance.h"
#include "core/seed.h"
#include "probes/registry.h"
#include "runs/subject.h"

namespace basin {
namespace {

constexpr size_t kDraws = 4;  // seeds of the probes on the network as it is, the run's own first

/// See verdict_of().
double rounding_of(const ProbePlan& plan) { return plan.dtype == "float64" ? 1e-6 : 1e-2; }

using Results = std::vector<ProbeResult>;  // one per variant

/// Nothing where the result lacks the quantity, or that many entries.
AuditValue value_in(const ProbeResult& result, const std::string& name, size_t i) {
  for (const Quantity& quantity : result.quantities)
    if (quantity.name == name && i < quantity.value.size())
      return {quantity.value[i], quantity.uncertainty[i], quantity.uncertainty_kind};
  return {NAN, NAN, UncertaintyKind::none};
}

/// Networks with the same function, and the probes that look at them.
class Audit {
 public:
  Audit(const std::string& run_folder, const Checkpoint& checkpoint, const ProbePlan& plan, at::Device device,
        std::vector<AuditVariant> variants)
      : checkpoint_(checkpoint),
        subject_(run_folder, checkpoint, plan, device),
        variants_(std::move(variants)) {}

  std::vector<AuditTrial> trials() const {
    return audit_trials(subject_.prepare(checkpoint_).objective->model(), subject_.classes(),
                        subject_.seed());
  }

  /// Draw 0 is the run's own seed.
  Results measure(const Symmetry& symmetry, size_t draw) const {
    Prepared prepared =
        subject_.prepare(transformed(checkpoint_, symmetry, optimizer_traits(subject_.options())));
    if (prepared.initial_weights.defined())
      prepared.initial_weights = transformed(prepared.initial_weights, prepared.objective->model(), symmetry);
    ProbeContext context = subject_.context(prepared);
    if (draw > 0) context.seed = derive_seed(context.seed, "audit", draw);
    Results results;
    for (const AuditVariant& variant : variants_) {
      results.push_back(run_or_fail(variant.probe, *variant.options, context));
    }
    return results;
  }

  const Subject& subject() const { return subject_; }
  const std::vector<AuditVariant>& variants() const { return variants_; }

 private:
  const Checkpoint& checkpoint_;
  Subject subject_;
  std::vector<AuditVariant> variants_;
};

std::vector<Measured> measure_all(const Audit& audit, const std::vector<AuditTrial>& trials, bool progress) {
  std::vector<Measured> all;
  for (const AuditVariant& variant : audit.variants()) all.push_back({variant, {}, {}});
  Progress line("audit", static_cast<double>(kDraws + trials.size()), "networks", progress);
  for (size_t i = 0; i < kDraws + trials.size(); ++i) {
    const bool original = i < kDraws;
    Results results = original ? audit.measure({}, i) : audit.measure(trials[i - kDraws].symmetry, 0);
    for (size_t v = 0; v < all.size(); ++v)
      (original ? all[v].originals : all[v].transformed).push_back(std::move(results[v]));
    line.update(static_cast<double>(i + 1));
  }
  line.finish(static_cast<double>(kDraws + trials.size()));
  return all;
}

/// All that a probe found; the same text for the same findings.
std::string findings(const ProbeResult& result) {
  std::string text;
  for (const Quantity& q : result.quantities)
    text += fmt::format("{} {} {} {} {}\n", q.name, q.value, q.uncertainty, q.ci_low, q.ci_high);
  for (const auto& [name, value] : result.attributes)
    if (name != "seed") text += fmt::format("{} {}\n", name, to_toml(value));
  return text;
}

/// By the last bit: a seed's numbers repeat exactly, and no probe has both numbers with an error over examples that
/// aren't drawn and others that are.
bool is_drawn(const std::vector<ProbeResult>& by_seed) {
  return std::any_of(by_seed.begin(), by_seed.end(), [&](const ProbeResult& result) {
    return findings(result) != findings(by_seed.front());
  });
}

/// Appends one number's rows, one for each transformation.
void append_rows(const Measured& measured, bool drawn, const Quantity& quantity, size_t entry,
                 const std::vector<AuditTrial>& trials, double rounding, std::vector<AuditRow>& rows) {
  Redrawn redrawn{{}, drawn};
  for (const ProbeResult& original : measured.originals)
    redrawn.values.push_back(value_in(original, quantity.name, entry).value);
  for (size_t t = 0; t < trials.size(); ++t) {
    AuditRow row{measured.variant.probe,
                 measured.variant.settings,
                 entry_name(quantity.name, quantity.is_vector, entry),
                 quantity.definition,
                 trials[t].transformation,
                 trials[t].kind,
                 trials[t].strength};
    row.before = value_in(measured.originals.front(), quantity.name, entry);
    row.after = value_in(measured.transformed[t], quantity.name, entry);
    row.verdict = verdict_of(row.before, row.after, redrawn, rounding);
    rows.push_back(std::move(row));
  }
}

/// What was measured of one quantity, on every network.
std::string all_values(const Measured& measured, const Quantity& quantity) {
  std::string text = fmt::format("{} {} {}", measured.variant.probe, quantity.name, quantity.definition);
  for (const auto* results : {&measured.originals, &measured.transformed}) {
    for (const ProbeResult& result : *results) {
      for (const Quantity& q : result.quantities)
        if (q.name == quantity.name) text += fmt::format(" {}", q.value);
    }
  }
  return text;
}

/// A number that a variant's options don't touch stands once.
std::vector<AuditRow> rows_of(const std::vector<Measured>& all, const std::vector<AuditTrial>& trials,
                              double rounding) {
  std::vector<AuditRow> rows;
  std::set<std::string> known;
  for (const Measured& measured : all) {
    const bool drawn = is_drawn(measured.originals);
    for (const Quantity& quantity : measured.originals.front().quantities) {
      if (!known.insert(all_values(measured, quantity)).second) continue;
      for (size_t entry = 0; entry < quantity.value.size(); ++entry)
        append_rows(measured, drawn, quantity, entry, trials, rounding, rows);
    }
  }
  return rows;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> failures_of(const std::vector<Measured>& all,
                                                             const std::vector<AuditTrial>& trials) {
  const auto failed = [](const ProbeResult& result) { return result.status == ProbeStatus::failed; };
  std::vector<std::pair<std::string, std::string>> failures;
  for (const Measured& measured : all) {
    const std::string& probe = measured.variant.probe;
    const auto original = std::find_if(measured.originals.begin(), measured.originals.end(), failed);
    if (original != measured.originals.end()) {  // and most likely everywhere else, for the same reason
      failures.emplace_back(probe, original->message);
      continue;
    }
    for (size_t t = 0; t < trials.size(); ++t)
      if (failed(measured.transformed[t]))
        failures.emplace_back(probe, fmt::format("on a transformed network ({}): {}",
                                                 trials[t].transformation, measured.transformed[t].message));
  }
  return failures;
}

namespace {

AuditFile file_of(const Audit& audit, const Checkpoint& checkpoint, const ProbePlan& plan,
                  std::vector<AuditRow> rows) {
  AuditFile file;
  file.attributes = {{"run_id", checkpoint.run_id},
                     {"config_id", checkpoint.config_id},
                     {"checkpoint", checkpoint.label},
                     {"checkpoint_sha256", content_hash(checkpoint)},
                     {"n_examples", audit.subject().examples_of(plan)},
                     {"subset_hash", audit.subject().subset_hash()},
                     {"dtype", plan.dtype},
                     {"seed", std::to_string(audit.subject().seed())}};
  file.provenance = collect_provenance();
  file.provenance.emplace_back("ended_utc", utc_now());
  file.rows = std::move(rows);
  return file;
}

}  // namespace

AuditResult measure_audit(const std::string& run_folder, const Checkpoint& checkpoint,
                          const AuditRequest& request, at::Device device) {
  const Audit audit(run_folder, checkpoint, request.plan, device,
                    audit_variants(request.plan.run, request.sets));
  const std::vector<AuditTrial> trials = audit.trials();
  if (trials.empty())
    throw ConfigError(
        "checkpoint " + checkpoint.label + " of " + run_folder +
        ": no transformation is known that leaves this model's function or decisions unchanged");
  const std::vector<Measured> all = measure_all(audit, trials, request.progress);
  return {file_of(audit, checkpoint, request.plan, rows_of(all, trials, rounding_of(request.plan))),
          failures_of(all, trials)};
}

}  // namespace basin
