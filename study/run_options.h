// defines: RunOptions, everything that a study file says about one run; ProbePlan; load_run_options().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/options.h"
#include "core/registry.h"
#include "core/runtime.h"
#include "core/toml_file.h"
#include "data/dataset.h"
#include "models/traits.h"
#include "optim/schedule.h"
#include "optim/traits.h"
#include "optim/trust_arm.h"
#include "trainers/train_options.h"

namespace basin {

/// [probes]: what is measured after training, on which checkpoints and examples.
struct ProbePlan {
  std::vector<std::string> run;   // registry names; empty: none
  int64_t subset = 1000;          // hashed subset of the training split; 0: all of it
  int64_t micro_batch = 250;      // affects only memory
  std::string dtype = "float32";  // float32 | float64
  int64_t graph_memory = 1024;    // MiB for Hessian-vector products; where graphs fit, they are 1.5 x faster
  bool fold_norm = true;          // NormMode::folded, or running
  std::vector<std::string> twin;  // measured at the twin of equal norms too (models/twin.h): "end@twin"
  std::vector<std::string> at = {
      "end", "loss"};  // "end", "loss" (every level), "every" (checkpoint_every), "start", "all", or a label
};
void bind_options(OptionTable& table, ProbePlan& plan);

/// One AnyOptions per registered name, copied by value.
class OptionSets {
 public:
  OptionSets() = default;
  OptionSets(const OptionSets& other);
  OptionSets& operator=(const OptionSets& other);
  OptionSets(OptionSets&&) = default;
  OptionSets& operator=(OptionSets&&) = default;

  /// The defaults of every entry of a registry.
  template <class Entry>
  explicit OptionSets(const std::vector<Entry>& registry) {
    for (const Entry& entry : registry) add(entry.name, entry.make_options());
  }

  void add(const std::string& name, std::unique_ptr<AnyOptions> options);
  const AnyOptions& at(const std::string& name) const;
  /// A group of its name for each.
  void bind(OptionTable& table);
  void bind_only(OptionTable& table, const std::string& name);

 private:
  std::vector<std::pair<std::string, std::unique_ptr<AnyOptions>>> sets_;
};

/// A copyable value. table() binds every key there is to this object's fields, of a const object to be looked at:
///
///   RunOptions cell = base;
///   cell.table().set("batch_size", int64_t{4096}, "sweep.batch_size");
///   check(cell);
///   cell.run_id();
struct RunOptions {
  RunOptions();

  std::string model = "small_cnn";
  std::string optimizer = "sgd";
  TrainOptions train;
  ScheduleOptions schedule;
  DataOptions data;
  OptionSets models, optimizers, probe_options;  // every registered one, active or not
  RuntimeOptions runtime;
  ProbePlan probes;

  /// All known keys; the table refers to this object, which outlives it.
  OptionTable table() &;
  OptionView table() const&;
  OptionView table() const&& = delete;
  /// Only what defines the run: top-level keys, [data], the active model's and optimiser's tables.
  OptionView defining_table() const&;
  OptionView defining_table() const&& = delete;

  /// Canonical TOML of defining_table(), what config.toml and every file of the run hold. Reads back as a
  /// study file.
  std::string resolved() const;
  /// First 12 hex digits of SHA-256 over the lines `key = value` of defining_table(), those of
  /// OptionRole::identity. Trust ratios that a run named by trust_from has are no part of it: they follow.
  std::string run_id() const;
  /// The same without the option that is_repetition, `seed`, and with the config_id of another run wherever the options name one by its
  /// run_id: equal for the repetitions of one setting.
  std::string config_id() const;

 private:
  void bind(OptionTable& table);
};

/// Default < file < sets ("key=value"). Entries under [sweep], [tune], [[contrast]], [[hypothesis]] and below them are left to the study;
/// any other unknown key is a ConfigError with its line. Does not call check(). `options`: the defaults.
RunOptions load_run_options(const std::string& path, const std::vector<std::string>& sets);
RunOptions run_options_from(const TomlDocument& document, const std::vector<std::string>& sets,
                            RunOptions options = {});

/// What follows about the run's model from its options.
ModelTraits model_traits(const RunOptions& options);

/// The options of the run's optimiser, as its scaling rule leaves them at this batch size (optim/scaling_rule.h).
std::unique_ptr<AnyOptions> scaled_optimizer_options(const RunOptions& options);

/// What stands in the place of the run's trust ratios; null where its optimiser has none.
const TrustArm* trust_arm(const RunOptions& options);

/// The option's value as all repetitions of the setting have it: where it names another run of the same seed, that run's config_id.
OptionValue value_of_setting(const RunOptions& options, const Option& option);

/// Whether a text is a run_id, 12 hex digits.
bool is_run_id(const std::string& text);

/// What follows about the run's optimiser from its options.
OptimizerTraits optimizer_traits(const RunOptions& options);

/// Relations between options that no single option can check; ConfigError in one line.
void check(const RunOptions& options);

}  // namespace basin
