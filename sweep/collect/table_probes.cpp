#include "sweep/collect/table_probes.h"

#include "core/math/ratio_estimate.h"
#include "core/math/statistics.h"

namespace basin {
namespace {

constexpr const char* kCheckpoint = "end";

const ProbeRecord* record_of(const SweepRow& run, const std::string& probe) {
  for (const ProbeRecord& record : run.probes) {
    if (record.probe == probe && record.checkpoint == kCheckpoint) return &record;
  }
  return nullptr;
}

const Quantity* quantity_of(const ProbeRecord& record, const std::string& name) {
  for (const Quantity& quantity : record.quantities) {
    if (quantity.name == name && !quantity.value.empty()) return &quantity;
  }
  return nullptr;
}

/// A run's first entry of a quantity.
struct Entry {
  const ProbeRecord* record;
  const Quantity* quantity;
  double value() const { return quantity->value.front(); }
  ProbeStatus status() const { return quantity->status_of(0); }
  double own(const std::vector<double>& values) const { return values.empty() ? NAN : values.front(); }
};

std::vector<Entry> entries_of(const RowList& runs, const std::string& probe, const std::string& quantity) {
  std::vector<Entry> entries;
  for (const SweepRow* run : runs) {
    const ProbeRecord* record = record_of(*run, probe);
    const Quantity* found = record ? quantity_of(*record, quantity) : nullptr;
    if (found) entries.push_back({record, found});
  }
  return entries;
}

/// "2 settings, not pooled" where the numbers are of different things, else "".
std::string refusal(const std::vector<Entry>& entries) {
  std::set<std::tuple<std::string, double, std::string>> settings;
  for (const Entry& entry : entries) {
    settings.insert({entry.quantity->definition, probe_attribute(*entry.record, "n_examples"),
                     probe_attribute_text(*entry.record, "subset_hash")});
  }
  return settings.size() > 1 ? fmt::format("{} settings, not pooled", settings.size()) : "";
}

std::string in_words(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

/// "2 not converged, 1 failed"
std::string in_words(const std::map<std::string, int>& counts) {
  std::string text;
  for (const auto& [status, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, in_words(status));
  }
  return text;
}

/// A number with the uncertainty that its probe gave it.
std::string alone(const Entry& entry, const ProbeEntry& probe) {
  const double low = entry.own(entry.quantity->ci_low), high = entry.own(entry.quantity->ci_high);
  if (std::isfinite(low)) return fmt::format("{:.3g} [{:.3g}, {:.3g}] (1)", entry.value(), low, high);
  const UncertaintyKind kind = entry.quantity->uncertainty_kind;
  const double uncertainty = entry.own(entry.quantity->uncertainty);
  if (kind == UncertaintyKind::none || !std::isfinite(uncertainty))
    return fmt::format("{:.4g} (1)", entry.value());
  if (kind == UncertaintyKind::lower_bound)
    return fmt::format("{:.4g} (1; lower bound, {} {:.2g})", entry.value(), probe.bound_error, uncertainty);
  return fmt::format("{:.4g} (1; {} {:.2g})", entry.value(), in_words(to_string(kind)), uncertainty);
}

/// The mean of the entries that came out.
std::string mean_text(const std::vector<Entry>& entries, const ProbeEntry& probe) {
  std::vector<Entry> good;
  std::map<std::string, int> refused;
  for (const Entry& entry : entries) {
    if (entry.status() == ProbeStatus::ok)
      good.push_back(entry);
    else
      ++refused[to_string(entry.status())];
  }
  const std::string others = in_words(refused);
  if (good.empty()) return others.empty() ? "–" : others;
  std::vector<double> values;
  for (const Entry& entry : good) values.push_back(entry.value());
  const std::string text = good.size() == 1 ? alone(good.front(), probe) : mean_and_error(values);
  return others.empty() ? text : text + ", " + others;
}

/// "120 [95, 160] (3)" or "not resolved (3)"; one run shows its own value and interval.
std::string ratio_text(const std::vector<Entry>& entries, const ProbeEntry& probe, const ProbeRatio& ratio) {
  std::vector<double> numerators, denominators;
  std::map<std::string, int> refused;
  const Entry* only = nullptr;
  for (const Entry& entry : entries) {
    const Quantity* above = quantity_of(*entry.record, ratio.numerator);
    const Quantity* below = quantity_of(*entry.record, ratio.denominator);
    const bool there =
        above && below && std::isfinite(above->value.front()) && std::isfinite(below->value.front());
    if (!there) {
      ++refused[to_string(entry.status())];
      continue;
    }
    numerators.push_back(above->value.front());
    denominators.push_back(below->value.front());
    only = &entry;
  }
  const std::string others = in_words(refused);
  if (denominators.empty()) return others.empty() ? "–" : others;
  std::string text;
  if (denominators.size() == 1) {
    text = only->status() == ProbeStatus::ok ? alone(*only, probe)
                                             : in_words(to_string(only->status())) + " (1)";
  } else {
    const PooledRatio pooled = pooled_ratio(numerators, denominators);
    text = pooled.resolved ? fmt::format("{:.3g} [{:.3g}, {:.3g}] ({})", pooled.value, pooled.low,
                                         pooled.high, pooled.runs)
                           : fmt::format("not resolved ({})", pooled.runs);
  }
  return others.empty() ? text : text + ", " + others;
}

/// The same over the training set as it is: what training draws from, and exact where all examples were measured. Probe files of
/// earlier versions have none.
ProbeRatio of_training_set(const ProbeRatio& ratio) {
  return {ratio.quantity + "_finite", ratio.numerator + "_finite", ratio.denominator + "_finite"};
}

}  // namespace

PooledRatio pooled_ratio(const std::vector<double>& numerators, const std::vector<double>& denominators) {
  PooledRatio pooled;
  pooled.runs = static_cast<int64_t>(denominators.size());
  if (pooled.runs < 2) return pooled;
  const double t = student_quantile(static_cast<double>(pooled.runs - 1));
  const double mean_numerator = mean_of(numerators).value, mean_denominator = mean_of(denominators).value;
  const double variance = covariance_of_means(denominators, denominators);
  const Estimate ratio =
      fieller_ratio(mean_numerator, mean_denominator, covariance_of_means(numerators, numerators), variance,
                    covariance_of_means(numerators, denominators), t);
  pooled.resolved = mean_denominator - t * std::sqrt(variance) > 0;
  pooled.value = ratio.value;
  pooled.low = ratio.low;
  pooled.high = ratio.high;
  return pooled;
}

std::string probe_text(const RowList& runs, const ProbeEntry& probe, const std::string& quantity) {
  const std::vector<Entry> entries = entries_of(runs, probe.name, quantity);
  if (const std::string reason = refusal(entries); !reason.empty()) return reason;
  for (const ProbeRatio& ratio : probe.ratios) {
    if (ratio.quantity != quantity) continue;
    const ProbeRatio finite = of_training_set(ratio);
    const std::vector<Entry> of_set = entries_of(runs, probe.name, finite.quantity);
    return of_set.empty() ? ratio_text(entries, probe, ratio) : ratio_text(of_set, probe, finite);
  }
  return mean_text(entries, probe);
}

std::string mean_and_error(const std::vector<double>& values) {
  std::vector<double> finite;
  std::copy_if(values.begin(), values.end(), std::back_inserter(finite),
               [](double v) { return std::isfinite(v); });
  if (finite.empty()) return "–";
  const auto [mean, error, count] = mean_of(finite);
  if (count == 1) return fmt::format("{:.4g} (1)", mean);
  if (error == 0.0) return fmt::format("{:.4g} ± 0 ({})", mean, count);
  const int decimals = std::clamp(1 - static_cast<int>(std::floor(std::log10(error))), 0, 8);
  return fmt::format("{:.{}f} ± {:.{}f} ({})", mean, decimals, error, decimals, count);
}

}  // namespace basin
