#include "optim/scaling_rule.h"

#include "core/error.h"
#include "core/nearest.h"
#include "optim/registry.h"

namespace basin {
namespace {

struct PublishedRate {
  int64_t smallest = 0, largest = 0;  // the batch sizes that it is stated for
  double rate = NAN, warmup_epochs = NAN;
};

struct PublishedTable {
  std::string name;
  std::vector<PublishedRate> rows;  // the first that holds counts
};

constexpr int64_t kAny = std::numeric_limits<int64_t>::max();

/// As read on 2026-11-22; docs/optimizers.md says where.
const std::vector<PublishedTable>& published_tables() {
  static const std::vector<PublishedTable> tables{
      // The commands of the README, then the thresholds of lars_util.py; both say the same of 4,096.
      {"mlperf", {{1024, 1024, 8.5, 5}, {1, 16383, 10, 5}, {16384, 32767, 25, 5}, {32768, kAny, 31.2, 25}}},
      {"torchlars",
       {{256, 256, 0.2, 0}, {8192, 8192, 12.8, 5}, {16384, 16384, 25, 5}, {32768, 32768, 29, 5}}},
      // "== 32768" stands in the source: what lies between counts as beyond it.
      {"tpu", {{1, 16384, 25, 5}, {32768, 32768, 34, 12}, {16385, kAny, 41, 16}}},
  };
  return tables;
}

const PublishedTable* table_of(const std::string& rule) {
  for (const PublishedTable& table : published_tables()) {
    if (table.name == rule) return &table;
  }
  return nullptr;
}

const PublishedRate& published_rate(const PublishedTable& table, int64_t batch_size) {
  std::string stated;
  for (const PublishedRate& row : table.rows) {
    if (row.smallest <= batch_size && batch_size <= row.largest) return row;
    stated += fmt::format("{}{}", stated.empty() ? "" : ", ", row.smallest);
  }
  throw ConfigError(fmt::format("scaling_rule = \"{}\" has no rate for batch_size = {}; it has rates for {}",
                                table.name, batch_size, stated));
}

double ratio_of(const ScheduleOptions& options, int64_t batch_size) {
  return static_cast<double>(batch_size) / static_cast<double>(options.base_batch);
}

// 1 - k (1 - beta); rounding alone doesn't lead below 0, where beta = 0 is meant.
double scaled_beta(const std::string& key, double beta, double k) {
  const double share = k * (1 - beta);
  if (share <= 1 + 1e-12) return std::max(0.0, 1 - share);
  throw ConfigError(fmt::format(
      "scaling_rule = \"malladi\" makes 1 - {} = {:g} to {:g} at {:g} x base_batch; at most 1 is possible",
      key, 1 - beta, share, k));
}

void scale_by_malladi(const OptimizerEntry& entry, double k, AnyOptions& of_optimizer) {
  if (!entry.moments) {
    throw ConfigError(
        fmt::format("scaling_rule = \"malladi\" is Adam's and LAMB's: optimizer = \"{}\" isn't made of their "
                    "beta1, beta2 and eps",
                    entry.name));
  }
  MomentOptions& moments = *entry.moments(of_optimizer);
  moments.beta1 = scaled_beta(entry.name + ".beta1", moments.beta1, k);
  moments.beta2 = scaled_beta(entry.name + ".beta2", moments.beta2, k);
  moments.eps /= std::sqrt(k);
}

// Lion's beta2 is of its average: the rule was made for second moments.
void keep_half_life(const OptimizerEntry& entry, double k, AnyOptions& of_optimizer) {
  if (!entry.beta2 || entry.traits(of_optimizer).squares_in.empty()) {
    throw ConfigError(
        fmt::format("beta2_rule = \"half_life\" scales a second moment's beta2: optimizer = \"{}\" has none",
                    entry.name));
  }
  double& beta2 = *entry.beta2(of_optimizer);
  beta2 = std::pow(beta2, k);
}

}  // namespace

const std::vector<std::string>& scaling_rules() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> rules{"none", "linear", "sqrt", "power", "malladi"};
    for (const PublishedTable& table : published_tables()) rules.push_back(table.name);
    return rules;
  }();
  return names;
}

bool is_published(const std::string& rule) { return table_of(rule) != nullptr; }

bool scales_moments(const std::string& rule) { return rule == "malladi"; }

double rate_factor(const ScheduleOptions& options, int64_t batch_size) {
  const std::string& rule = options.scaling_rule;
  if (rule == "none") return 1;
  if (rule == "linear") return ratio_of(options, batch_size);
  if (rule == "sqrt" || scales_moments(rule)) return std::sqrt(ratio_of(options, batch_size));
  if (rule == "power") return std::pow(ratio_of(options, batch_size), options.scaling_power);
  if (const PublishedTable* table = table_of(rule)) return published_rate(*table, batch_size).rate;
  throw ConfigError(unknown_name("scaling_rule", rule, scaling_rules()));
}

double warmup_at(const ScheduleOptions& options, int64_t batch_size) {
  if (const PublishedTable* table = table_of(options.scaling_rule))
    return options.warmup * published_rate(*table, batch_size).warmup_epochs;
  return options.warmup_rule == "linear" ? options.warmup * ratio_of(options, batch_size) : options.warmup;
}

void scale_options(const ScheduleOptions& options, int64_t batch_size, const std::string& optimizer,
                   AnyOptions& of_optimizer) {
  const OptimizerEntry& entry = find_entry(optimizer_registry(), optimizer, "optimizer");
  const double k = ratio_of(options, batch_size);
  if (scales_moments(options.scaling_rule)) {
    if (options.beta2_rule != "none")
      throw ConfigError(fmt::format(
          "scaling_rule = \"malladi\" and beta2_rule = \"{}\" exclude each other: both scale beta2",
          options.beta2_rule));
    scale_by_malladi(entry, k, of_optimizer);
  }
  if (options.beta2_rule == "half_life") keep_half_life(entry, k, of_optimizer);
  if (options.decay_rule == "none") return;
  if (!entry.weight_decay)
    throw ConfigError(fmt::format("decay_rule = \"{}\": optimizer = \"{}\" has no weight_decay",
                                  options.decay_rule, optimizer));
  *entry.weight_decay(of_optimizer) *= k;
}

}  // namespace basin
