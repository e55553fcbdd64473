#include "optim/trust_arm.h"

#include <charconv>
#include <numeric>
#include <optional>

#include "core/error.h"
#include "core/math/philox.h"
#include "core/seed.h"

namespace basin {
namespace {

const std::vector<std::string> kArms{"live", "frozen", "mean", "shuffled", "frozen_mean", "frozen_shuffled"};

struct GivenRatio {
  std::string parameter;
  double ratio = NAN;
};

/// Nothing where the text isn't NAME=VALUE with a VALUE above 0.
std::optional<GivenRatio> given_ratio(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) return std::nullopt;
  GivenRatio given{text.substr(0, equals)};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + equals + 1, end, given.ratio);
  if (error != std::errc() || stop != end || !std::isfinite(given.ratio) || given.ratio <= 0)
    return std::nullopt;
  return given;
}

Constraint given_ratios() {
  return {"each PARAMETER=RATIO, RATIO above 0", [](const OptionValue& value) {
            const auto& list = std::get<std::vector<std::string>>(value);
            return std::all_of(list.begin(), list.end(),
                               [](const std::string& text) { return given_ratio(text).has_value(); });
          }};
}

std::vector<size_t> trusted(const std::vector<Treatment>& treatments) {
  std::vector<size_t> found;
  for (size_t i = 0; i < treatments.size(); ++i)
    if (treatments[i].trust) found.push_back(i);
  return found;
}

/// One cycle through 0..n-1, n >= 2: Sattolo's algorithm. The modulus leaves a bias of n/2^64.
std::vector<size_t> cycle(size_t n, int64_t number) {
  const uint64_t key = derive_seed(static_cast<uint64_t>(number), "trust-shuffle");
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = n - 1; i > 0; --i) {
    const auto words = philox({static_cast<uint32_t>(i), 0, 0, 0},
                              {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
    std::swap(order[i], order[((uint64_t{words[0]} << 32) | words[1]) % i]);
  }
  return order;
}

/// f_i of each tensor; NaN where it has none.
std::vector<double> given_to(const std::string& method, const TrustArm& arm,
                             const std::vector<ParameterInfo>& parameters,
                             const std::vector<Treatment>& treatments) {
  if (arm.trust_ratios.empty()) {
    throw ConfigError(fmt::format("{}: trust = \"{}\" needs trust_ratios or trust_from", method, arm.trust));
  }
  std::vector<double> found(parameters.size(), NAN);
  for (const std::string& text : arm.trust_ratios) {
    const std::optional<GivenRatio> given = given_ratio(text);
    const auto is_it = [&](const ParameterInfo& p) { return given && p.name == given->parameter; };
    const auto place = std::find_if(parameters.begin(), parameters.end(), is_it);
    const auto i = static_cast<size_t>(place - parameters.begin());
    if (place == parameters.end() || !treatments[i].trust) {
      throw ConfigError(
          fmt::format("{}: trust_ratios: \"{}\" names no parameter that has a trust ratio", method, text));
    }
    found[i] = given->ratio;
  }
  for (const size_t i : trusted(treatments)) {
    if (std::isnan(found[i])) {
      throw ConfigError(
          fmt::format("{}: trust_ratios: none is given for \"{}\"", method, parameters[i].name));
    }
  }
  return found;
}

}  // namespace

void bind_trust_arm(OptionTable& table, TrustArm& arm) {
  table
      .add("trust", arm.trust, one_of(kArms),
           "trust ratios as the method has them (live), given ones (frozen), the mean over layers, or "
           "shuffled "
           "among layers")
      .quiet_default();
  table
      .add("trust_ratios", arm.trust_ratios, given_ratios(),
           "given trust ratios, one for each parameter that has one; read by the frozen arms alone")
      .quiet_default();
  table
      .add("trust_from", arm.trust_from, anything(),
           "run whose mean trust ratios become trust_ratios where that is empty: conditions that name a run "
           "of "
           "the study, or the path of a run's folder or run.h5")
      .quiet_default();
  table.add("trust_shuffle", arm.trust_shuffle, at_least(0), "number of the permutation of shuffled arms")
      .quiet_default();
  table
      .add("trust_path", arm.trust_path, anything(),
           "the path that trust_from had, for the record; filled in by the study")
      .execution()
      .quiet_default();
  table
      .add("trust_setting", arm.trust_setting, anything(),
           "config_id of the run that trust_from names; filled in by the study")
      .execution()
      .quiet_default();
}

std::string trust_ratio_text(const std::string& parameter, double ratio) {
  return fmt::format("{}={}", parameter, ratio);
}

void set_ratio_sources(const std::string& method, const TrustArm& arm,
                       const std::vector<ParameterInfo>& parameters, std::vector<Treatment>& treatments) {
  const bool frozen = arm.frozen(), shuffled = arm.trust.ends_with("shuffled"),
             mean = arm.trust.ends_with("mean");
  if (arm.trust == "live") return;
  const std::vector<size_t> tensors = trusted(treatments);
  if (tensors.empty() || (shuffled && tensors.size() < 2)) {
    throw ConfigError(fmt::format("{}: trust = \"{}\" needs at least {} parameters with trust ratios, not {}",
                                  method, arm.trust, shuffled ? 2 : 1, tensors.size()));
  }
  std::vector<size_t> taken = tensors;  // whose ratio each one has
  if (shuffled) {
    const std::vector<size_t> order = cycle(tensors.size(), arm.trust_shuffle);
    for (size_t t = 0; t < tensors.size(); ++t) taken[t] = tensors[order[t]];
  }
  std::vector<double> given;
  double sum = 0;
  if (frozen) {
    given = given_to(method, arm, parameters, treatments);
    for (const size_t i : tensors) sum += given[i];
  }
  for (size_t t = 0; t < tensors.size(); ++t) {
    Treatment& treatment = treatments[tensors[t]];
    treatment.source = frozen ? RatioSource::given : mean ? RatioSource::mean : RatioSource::other;
    treatment.other = static_cast<int64_t>(taken[t]);
    if (frozen) treatment.given_ratio = mean ? sum / static_cast<double>(tensors.size()) : given[taken[t]];
  }
}

bool has_given_ratios(const std::vector<Treatment>& treatments) {
  const std::vector<size_t> tensors = trusted(treatments);
  return !tensors.empty() && std::all_of(tensors.begin(), tensors.end(), [&](size_t i) {
    return treatments[i].source == RatioSource::given;
  });
}

std::string arm_definition(const std::string& arm, const std::string& live) {
  if (arm == "live") return live;
  if (arm == "mean") return "mean over the tensors that have one of " + live;
  if (arm == "shuffled") return "that of another tensor by trust_shuffle: " + live;
  const std::string which = arm == "frozen_mean"       ? "mean of the given ratios"
                            : arm == "frozen_shuffled" ? "given ratio of another tensor by trust_shuffle"
                                                       : "given ratio";
  return which + " (trust_ratios), in the place of " + live;
}

}  // namespace basin
