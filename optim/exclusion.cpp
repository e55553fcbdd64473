#include "optim/exclusion.h"

#include <charconv>
#include <optional>

#include "core/error.h"

namespace basin {
namespace {

const std::string kName = "name:", kDimension = "dim<=", kNoDecay = "no_decay";
const std::vector<std::string> kKinds{"weight", "bias", "norm_weight", "norm_bias"};

bool is_entry(const std::string& text) {
  const bool dimension = text.rfind(kDimension, 0) == 0 && text.size() == kDimension.size() + 1 &&
                         std::isdigit(static_cast<unsigned char>(text.back())) != 0;
  const bool name = text.rfind(kName, 0) == 0 && text.size() > kName.size();
  return std::find(kKinds.begin(), kKinds.end(), text) != kKinds.end() || dimension || name;
}

const std::string kEntries = "weight | bias | norm_weight | norm_bias | dim<=N | name:PATTERN";

/// A list whose elements all satisfy `holds`.
Constraint each(const std::string& text, bool (*holds)(const std::string&)) {
  return {"each " + text, [holds](const OptionValue& value) {
            const auto& list = std::get<std::vector<std::string>>(value);
            return std::all_of(list.begin(), list.end(), holds);
          }};
}

struct Factor {
  std::string entry;
  double value = NAN;
};

/// Nothing where the text isn't ENTRY=FACTOR. The last = counts: a name's pattern may hold one.
std::optional<Factor> factor_in(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || !is_entry(text.substr(0, equals))) return std::nullopt;
  Factor factor{text.substr(0, equals)};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + equals + 1, end, factor.value);
  if (error != std::errc() || stop != end || !std::isfinite(factor.value) || factor.value <= 0)
    return std::nullopt;
  return factor;
}

/// * stands for any characters, ? for one.
bool is_like(const char* name, const char* pattern) {
  if (*pattern == '\0') return *name == '\0';
  if (*pattern == '*') return is_like(name, pattern + 1) || (*name != '\0' && is_like(name + 1, pattern));
  return *name != '\0' && (*pattern == '?' || *pattern == *name) && is_like(name + 1, pattern + 1);
}

bool matches(const ParameterInfo& parameter, const std::string& entry) {
  if (entry.rfind(kName, 0) == 0) return is_like(parameter.name.c_str(), entry.c_str() + kName.size());
  if (entry.rfind(kDimension, 0) == 0) return parameter.tensor.dim() <= entry.back() - '0';
  return entry != kNoDecay && parameter.kind == parameter_kind(entry);
}

bool excluded(const ParameterInfo& parameter, const Exclusions& list) {
  return std::any_of(list.begin(), list.end(),
                     [&](const std::string& entry) { return matches(parameter, entry); });
}

}  // namespace

const Exclusions& default_exclusions() {
  static const Exclusions kinds{"bias", "norm_weight", "norm_bias"};
  return kinds;
}

Constraint parameter_kinds() { return one_of({kKinds.begin(), kKinds.end()}); }
Constraint exclusions_from_decay() { return each(kEntries, is_entry); }
Constraint exclusions_from_trust() {
  return each(kEntries + " | " + kNoDecay,
              [](const std::string& text) { return text == kNoDecay || is_entry(text); });
}

void bind_exclusion(OptionTable& table, Exclusions& from_decay) {
  table.add("exclude_from_decay", from_decay, exclusions_from_decay(), "parameters without weight decay");
}

void bind_factors(OptionTable& table, Factors& lr_factors, Factors& decay_factors) {
  const Constraint constraint = each("ENTRY=FACTOR, FACTOR above 0, ENTRY " + kEntries,
                                     [](const std::string& text) { return factor_in(text).has_value(); });
  table.add("lr_factors", lr_factors, constraint,
            "factors on the learning rate; the last entry that matches a parameter counts");
  table.add("decay_factors", decay_factors, constraint, "factors on weight_decay, likewise");
}

std::vector<bool> matched_by(const std::vector<ParameterInfo>& parameters, const Exclusions& list) {
  std::vector<bool> matched;
  for (const ParameterInfo& parameter : parameters) matched.push_back(excluded(parameter, list));
  return matched;
}

std::vector<double> factors_of(const std::vector<ParameterInfo>& parameters, const Factors& list) {
  std::vector<double> factors(parameters.size(), 1);
  for (const std::string& text : list) {
    const std::optional<Factor> factor = factor_in(text);
    if (!factor) throw ConfigError("\"" + text + "\" is no ENTRY=FACTOR with a FACTOR above 0");
    for (size_t i = 0; i < parameters.size(); ++i)
      if (matches(parameters[i], factor->entry)) factors[i] = factor->value;
  }
  return factors;
}

std::vector<Treatment> treatments(const std::vector<ParameterInfo>& parameters, const TreatmentRules& rules) {
  const Exclusions& untrusted = rules.without_trust;
  const bool trust_needs_decay = std::find(untrusted.begin(), untrusted.end(), kNoDecay) != untrusted.end();
  const std::vector<double> of_rate = factors_of(parameters, rules.lr_factors);
  const std::vector<double> of_decay = factors_of(parameters, rules.decay_factors);
  std::vector<Treatment> result;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const bool decays = !excluded(parameters[i], rules.without_decay);
    const double decay = decays ? rules.weight_decay * of_decay[i] : 0;
    const bool trust = !excluded(parameters[i], untrusted) && !(trust_needs_decay && decay == 0);
    result.push_back({decay, trust, of_rate[i]});
  }
  return result;
}

}  // namespace basin
