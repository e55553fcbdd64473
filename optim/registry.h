// defines: OptimizerEntry and the table of optimisers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/registry.h"
#include "optim/exclusion.h"
#include "optim/moment_optimizer.h"
#include "optim/optimizer.h"
#include "optim/traits.h"
#include "optim/trust_arm.h"

namespace basin {

struct OptimizerEntry {
  std::string name;
  std::string label;  // in figures and tables
  std::string help;
  /// Settings that leave of the method its step along one gradient: no momentum, no decay, a trust ratio for every tensor.
  std::vector<std::string> memoryless = {};
  /// Settings with which it finds the minimum of a quadratic at rates below 0.05: no decay, no small trust ratio.
  std::vector<std::string> undecayed = {};
  std::unique_ptr<AnyOptions> (*make_options)() = nullptr;
  std::unique_ptr<Optimizer> (*make)(std::vector<ParameterInfo> parameters,
                                     const AnyOptions& options) = nullptr;
  std::function<OptimizerTraits(const AnyOptions&)> traits = {};
  /// Adam's constants among its options; null for a method without.
  MomentOptions* (*moments)(AnyOptions& options) = nullptr;
  /// Its weight decay among its options.
  double* (*weight_decay)(AnyOptions& options) = nullptr;
  /// The share of the second moment that an update keeps, among its options; null for a method without.
  double* (*beta2)(AnyOptions& options) = nullptr;
  /// What stands in the place of trust ratios, among its options; null for a method without them.
  const TrustArm* (*trust_arm)(const AnyOptions& options) = nullptr;
  /// The factors of parameters among its options; null for a method without.
  FactorLists (*factors)(const AnyOptions& options) = nullptr;
};

/// The entry of a class T, made from parameters and options O.
template <class T, class O>
OptimizerEntry optimizer_entry(OptimizerEntry entry, OptimizerTraits (*traits)(const O&)) {
  entry.make_options = basin::make_options<O>;
  entry.make = [](std::vector<ParameterInfo> parameters,
                  const AnyOptions& options) -> std::unique_ptr<Optimizer> {
    return std::make_unique<T>(std::move(parameters), options_as<O>(options));
  };
  entry.traits = [traits](const AnyOptions& options) { return traits(options_as<O>(options)); };
  if constexpr (std::is_base_of_v<MomentOptions, O>)
    entry.moments = [](AnyOptions& options) -> MomentOptions* { return &options_as<O>(options); };
  if constexpr (requires(O & o) { &o.weight_decay; })
    entry.weight_decay = [](AnyOptions& options) { return &options_as<O>(options).weight_decay; };
  if constexpr (requires(O & o) { &o.beta2; })
    entry.beta2 = [](AnyOptions& options) { return &options_as<O>(options).beta2; };
  if constexpr (requires(const O& o) { FactorLists{o.lr_factors, o.decay_factors}; })
    entry.factors = [](const AnyOptions& options) {
      return FactorLists{options_as<O>(options).lr_factors, options_as<O>(options).decay_factors};
    };
  if constexpr (requires(const O& o) { TrustArm{o.arm}; })
    entry.trust_arm = [](const AnyOptions& options) { return &options_as<O>(options).arm; };
  return entry;
}

/// In the order of lists and figures. A new optimiser is one file and one line in registry.cpp.
const std::vector<OptimizerEntry>& optimizer_registry();

}  // namespace basin
