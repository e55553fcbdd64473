// defines: Probe, ProbeContext and ProbeResult.
#pragma once

#include <ATen/core/Tensor.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/options.h"
#include "hessian/objective.h"
#include "io/quantity.h"
#include "optim/optimizer.h"

namespace basin {

struct ProbeResult {
  std::string probe;
  ProbeStatus status = ProbeStatus::ok;
  std::string message;               // one line where status is not ok
  std::vector<Quantity> quantities;  // the first is the headline
  /// Settings and costs: solver, iterations, hvps, gradients, seed, tolerance, distribution of A, ...
  std::vector<std::pair<std::string, OptionValue>> attributes;
  double seconds = 0;
};

/// What a probe sees: a problem, of a run the checkpoint's network on a fixed set of examples. A probe leaves
/// parameters bit-identical.
struct ProbeContext {
  Problem& problem;
  uint64_t seed;           // of the stream "probe" for this run and probe
  int64_t train_examples;  // size of the training set that the examples were drawn from
  std::string subset_hash;
  std::string set = "train";
  /// The run's optimiser with its state at the checkpoint, and the rate of the checkpoint's last update
  /// (before the first: that one's); null and NaN where there is none.
  const Optimizer* optimizer = nullptr;
  double learning_rate = NAN;
  int64_t batch_size = 0;  // of that update; 0: not known
  /// A file in which a long search may keep its state, and what it is the state of; empty: none.
  std::string state_path = {}, state_key = {};
  bool keeps_state = true;          // false: another rank writes it
  at::Tensor initial_weights = {};  // flat, of the run's checkpoint "start"; undefined: not at hand

  /// The network itself, for probes that look at logits or layers; Unanswered where it is in another process.
  Objective& network() const;
};

/// In passes over the examples measured.
struct ProbeCost {
  double gradients = 0, hvps = 0;
};

class Probe {
 public:
  explicit Probe(std::string name) : name_(std::move(name)) {}
  virtual ~Probe() = default;
  /// What measure() finds, besides what every probe records of the function measured (n_examples,
  /// train_examples, set, subset_hash, seed, dtype, device, bn_mode, micro_batch, parameters, weight_norm)
  /// and the seconds that it took.
  /// `unavailable`, without a number, where the problem doesn't answer what needs() names.
  ProbeResult run(const ProbeContext& context);
  /// With the probe's options. What only some of its numbers need is not among them: those alone are `unavailable`.
  virtual std::vector<Answer> needs() const = 0;
  /// Before it is run, for a forecast.
  virtual ProbeCost expected_cost() const = 0;

 private:
  virtual void measure(const ProbeContext& context, ProbeResult& result) = 0;
  std::string name_;
};

}  // namespace basin
