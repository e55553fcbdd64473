// defines: HookEntry and the table of hooks; registered_hooks(), the options of all of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/record.h"
#include "trainers/hook_options.h"

namespace basin {

struct HookEntry {
  std::string name;
  std::string help;             // one sentence
  std::vector<std::string> on;  // settings of a run that has it, for tests of all hooks
  /// What it may write into a run's summary; `definition` is an anchor in docs. Files say it of their columns, and tables that take
  /// options for axes know by it that these are none.
  std::vector<Column> summary = {};
  std::unique_ptr<HookOptions> (*make_options)() = nullptr;
};

/// The erased options of hook H.
template <class H>
struct OptionsOfHook final : HookOptionsOf<typename H::Options> {
  std::unique_ptr<HookOptions> clone() const override { return std::make_unique<OptionsOfHook>(*this); }
  void bind(OptionTable& table) override { H::bind(table, this->value); }
  void check(const HookCheck& run) const override { H::check(this->value, run); }
  UpdatesNeeded updates_needed() const override { return H::updates_needed(this->value); }
  void plan(BatchPlan& plan) const override { H::plan(this->value, plan); }
  HookCost cost() const override { return H::cost(this->value); }
  std::unique_ptr<UpdateHook> make(const HookSetup& setup) const override {
    return H::make(this->value, setup);
  }
};

/// The entry of the hook's class H.
template <class H>
HookEntry hook_entry(HookEntry entry) {
  entry.make_options = []() -> std::unique_ptr<HookOptions> { return std::make_unique<OptionsOfHook<H>>(); };
  return entry;
}

/// In the order in which hooks act and in which their keys stand in config.toml, so part of the names of runs. A new hook is
/// one file and one line in registry.cpp.
const std::vector<HookEntry>& hook_registry();

/// What TrainOptions::hooks holds where a study reads it: all of them, as they are by default.
HookList registered_hooks();

}  // namespace basin
