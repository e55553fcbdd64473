#include "study/run_options.h"

#include <map>
#include <set>

#include "core/error.h"
#include "core/hash.h"
#include "data/load.h"
#include "models/registry.h"
#include "optim/registry.h"
#include "optim/scaling_rule.h"
#include "probes/registry.h"
#include "study/checkpoint_names.h"
#include "trainers/batch_plan.h"
#include "trainers/check_rule.h"
#include "trainers/hooks/registry.h"
#include "trainers/workers/stale_options.h"

namespace basin {
namespace {

const OptionTraits kOfModels{.cost = OptionCost::by_value}, kOfProbes{.role = OptionRole::measurement};

void bind_top_level(OptionTable& table, RunOptions& options) {
  table
      .add("model", options.model, one_of(names_of(model_registry())),
           "network; its options are in the table of that name")
      .costs();
  table
      .add("optimizer", options.optimizer, one_of(names_of(optimizer_registry())),
           "optimiser; its options are in the table of that name")
      .costs();
  bind_options(table, options.train);
  bind_options(table, options.schedule);
  table.group("data", [&](OptionTable& t) { bind_options(t, options.data); });
  table.group("branch", [&](OptionTable& t) { bind_options(t, options.train.branch); });
}

const std::map<std::string, OptionValue>& quiet_defaults() {
  static const std::map<std::string, OptionValue> values = [] {
    std::map<std::string, OptionValue> quiet;
    const RunOptions defaults;
    for (const Option& option : defaults.table()) {
      if (option.traits.has_quiet_default) quiet.emplace(option.key, option.get());
    }
    return quiet;
  }();
  return values;
}

std::string identity_hash(const RunOptions& options, bool with_repetition) {
  std::string text;
  const TrustArm* arm = trust_arm(options);
  const std::string ratios = options.optimizer + ".trust_ratios";
  for (const Option& option : options.defining_table()) {
    if (option.traits.role != OptionRole::identity) continue;
    if (option.traits.is_repetition && !with_repetition) continue;
    if (option.traits.has_quiet_default && quiet_defaults().at(option.key) == option.get()) continue;
    if (arm && option.key == ratios && !arm->trust_from.empty()) continue;  // that run's
    text += option.key + " = " + to_toml(with_repetition ? option.get() : value_of_setting(options, option)) +
            "\n";
  }
  return sha256_hex(text).substr(0, 12);
}

// What a study says about its grid, its tuning and its claims.
bool is_study_key(const std::string& key) {
  const std::string table = key.substr(0, key.find('.'));
  return table == "sweep" || table == "tune" || table == "contrast" || table == "hypothesis";
}

}  // namespace

ModelTraits model_traits(const RunOptions& options) {
  return find_entry(model_registry(), options.model, "model").traits(options.models.at(options.model));
}

std::unique_ptr<AnyOptions> scaled_optimizer_options(const RunOptions& options) {
  std::unique_ptr<AnyOptions> scaled = options.optimizers.at(options.optimizer).clone();
  scale_options(options.schedule, options.train.batch_size, options.optimizer, *scaled);
  return scaled;
}

const TrustArm* trust_arm(const RunOptions& options) {
  const OptimizerEntry& method = find_entry(optimizer_registry(), options.optimizer, "optimizer");
  return method.trust_arm ? method.trust_arm(options.optimizers.at(options.optimizer)) : nullptr;
}

OptionValue value_of_setting(const RunOptions& options, const Option& option) {
  const TrustArm* arm = trust_arm(options);
  std::string setting;
  if (option.key == "branch.from") setting = options.train.branch.setting;
  if (option.key == "parallel.order") setting = options.train.hook<StaleGradientOptions>().order_setting;
  if (arm && option.key == options.optimizer + ".trust_from") setting = arm->trust_setting;
  return setting.empty() ? option.get() : OptionValue(setting);
}

bool is_run_id(const std::string& text) {
  return text.size() == 12 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

OptimizerTraits optimizer_traits(const RunOptions& options) {
  return find_entry(optimizer_registry(), options.optimizer, "optimizer")
      .traits(options.optimizers.at(options.optimizer));
}

void bind_options(OptionTable& table, ProbePlan& plan) {
  table.within(kOfProbes, [&](OptionTable& t) {
    t.add("run", plan.run, one_of(names_of(probe_registry())), "probes to run on checkpoints").costs_if_on();
    t.add("twin", plan.twin, one_of(names_of(probe_registry())),
          "probes to run also at the same function with weights of standard lengths, as checkpoint NAME@twin")
        .costs_if_on()
        .quiet_default();
    t.add("subset", plan.subset, at_least(0), "number of training examples, chosen by image hash; 0: all");
    t.add("micro_batch", plan.micro_batch, at_least(1), "examples per pass; affects memory, not results")
        .execution()
        .costs();
    t.add("dtype", plan.dtype, one_of({"float32", "float64"}), "floating-point type of the probes").costs();
    t.add("graph_memory", plan.graph_memory, at_least(0),
          "MiB for Hessian-vector products, including graphs kept between them; affects only speed")
        .execution();
    t.add("fold_norm", plan.fold_norm, anything(),
          "fold batch normalisation into the layer before it: the same function; affects only rounding and "
          "speed")
        .execution();
    t.add("at", plan.at, anything(),
          "checkpoints: end, start, average (averaged weights), loss (every level), every (those that "
          "checkpoint_every keeps), all, or labels");
  });
}

OptionSets::OptionSets(const OptionSets& other) { *this = other; }

OptionSets& OptionSets::operator=(const OptionSets& other) {
  if (this == &other) return *this;
  sets_.clear();
  for (const auto& [name, options] : other.sets_) sets_.emplace_back(name, options->clone());
  return *this;
}

void OptionSets::add(const std::string& name, std::unique_ptr<AnyOptions> options) {
  sets_.emplace_back(name, std::move(options));
}

const AnyOptions& OptionSets::at(const std::string& name) const {
  for (const auto& [known, options] : sets_) {
    if (known == name) return *options;
  }
  throw ConfigError("no options for \"" + name + "\"");
}

void OptionSets::bind(OptionTable& table) {
  for (const auto& [name, options] : sets_) bind_only(table, name);
}

void OptionSets::bind_only(OptionTable& table, const std::string& name) {
  for (auto& [known, options] : sets_) {
    if (known == name) table.group(name, [&](OptionTable& t) { options->bind(t); });
  }
}

RunOptions::RunOptions() {
  train.hooks = registered_hooks();
  models = OptionSets(model_registry());
  optimizers = OptionSets(optimizer_registry());
  probe_options = OptionSets(probe_registry());
}

void RunOptions::bind(OptionTable& table) {
  bind_top_level(table, *this);
  table.within(kOfModels, [&](OptionTable& t) { models.bind(t); });
  optimizers.bind(table);
  table.group("runtime", [&](OptionTable& t) { bind_options(t, runtime); });
  table.group("probes", [&](OptionTable& t) { bind_options(t, probes); });
  table.within(kOfProbes, [&](OptionTable& t) { probe_options.bind(t); });
}

OptionTable RunOptions::table() & {
  OptionTable table;
  bind(table);
  return table;
}

OptionView RunOptions::table() const& {
  return view_of(*this, [](OptionTable& table, RunOptions& options) { options.bind(table); });
}

OptionView RunOptions::defining_table() const& {
  return view_of(*this, [](OptionTable& table, RunOptions& options) {
    bind_top_level(table, options);
    table.within(kOfModels, [&](OptionTable& t) { options.models.bind_only(t, options.model); });
    options.optimizers.bind_only(table, options.optimizer);
  });
}

std::string RunOptions::resolved() const { return defining_table().to_toml(); }

std::string RunOptions::run_id() const { return identity_hash(*this, true); }
std::string RunOptions::config_id() const { return identity_hash(*this, false); }

RunOptions run_options_from(const TomlDocument& document, const std::vector<std::string>& sets,
                            RunOptions options) {
  OptionTable table = options.table();
  std::vector<TomlEntry> entries;
  for (const TomlEntry& entry : document.entries) {
    if (!is_study_key(entry.key)) entries.push_back(entry);
  }
  for (const TomlTableArray& array : document.table_arrays) {
    if (!is_study_key(array.key)) {
      throw ConfigError((array.where.empty() ? "" : array.where.front() + ": ") + "unknown table [[" +
                        array.key + "]]");
    }
  }
  set_all(table, entries);
  for (const std::string& set : sets) table.set_from_text(set, "--set");
  return options;
}

RunOptions load_run_options(const std::string& path, const std::vector<std::string>& sets) {
  return run_options_from(read_toml(path), sets);
}

void check(const RunOptions& options) {
  const OptimizerTraits optimizer = optimizer_traits(options);
  check_training(options.train, model_traits(options).batch_statistics, optimizer.overlap,
                 optimizer.gradients_elsewhere);
  check_branch(options.train.branch, optimizer.overlap);
  check_workers(options.train.hook<StaleGradientOptions>());
  if (options.train.branch.anneal > 0 && options.train.batch_rate_power > 0 &&
      !options.train.batch_milestones.empty())
    throw ConfigError(
        "branch.anneal and batch_rate_power exclude each other: the rate falls in a line, whatever the batch "
        "does");
  check_schedule(options.schedule, options.train.learning_rate, options.train.batch_size);
  if (options.schedule.schedule_unit == "epochs" && !options.train.batch_milestones.empty()) {
    throw ConfigError(
        "schedule_unit = \"epochs\" and batch_milestones exclude each other: no epoch has as many updates as "
        "another");
  }
  scaled_optimizer_options(options);      // refuses what the rule can't scale
  const CheckRule levels(options.train);  // refuses levels that would share a checkpoint
  check_probed_at(options.probes.at, options.train);
  for (const std::string& probe : options.probes.run)  // refuses options that exclude one another
    find_entry(probe_registry(), probe, "probe").make(options.probe_options.at(probe));
  if (options.data.augmentation != "none" && options.data.padding < 1) {
    throw ConfigError(fmt::format("data.padding = {} must be at least 1 with augmentation = \"{}\"",
                                  options.data.padding, options.data.augmentation));
  }
  if (options.data.augmentation == "none" && options.data.cutout > 0) {
    throw ConfigError(
        fmt::format("data.cutout = {} needs augmentation = \"crop_flip\"", options.data.cutout));
  }
}

}  // namespace basin
