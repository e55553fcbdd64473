// defines: Subject, what probes measure: a run's network at a checkpoint; run_or_fail().
#pragma once

#include <ATen/core/Tensor.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>

#include "data/dataset.h"
#include "hessian/objective.h"
#include "io/checkpoint.h"
#include "probes/probe.h"
#include "runs/probe_settings.h"

namespace basin {

/// A checkpoint ready to be measured.
struct Prepared {
  std::unique_ptr<Objective> objective;
  std::unique_ptr<Optimizer>
      optimizer;  // none at a twin, of a script, or where the weights are a mean of chains'
  double learning_rate = NAN;
  int64_t batch_size = 0;      // of the checkpoint's last update, before the first: that one's
  at::Tensor initial_weights;  // flat, in the model's order; undefined where the run keeps no "start"
};

/// One run's data, read once, and what probes look at: a network at a checkpoint on a subset of the training
/// split.
class Subject {
 public:
  /// Options and data as the checkpoint's own config has them; ConfigError where the data are others now.
  Subject(const std::string& run_folder, const Checkpoint& checkpoint, const ProbePlan& plan,
          at::Device device);

  /// `twin`: at equal_norm_twin() (models/twin.h), the initial weights at theirs, without an optimiser, whose state
  /// is that of other weights.
  Prepared prepare(const Checkpoint& checkpoint, bool twin = false) const;
  /// The context for a probe, without a search's state.
  ProbeContext context(const Prepared& prepared) const;

  const RunOptions& options() const { return options_; }
  uint64_t seed() const;
  int64_t train_examples() const { return data_.train.size(); }
  int64_t classes() const { return data_.classes(); }
  const std::string& subset_hash() const { return subset_hash_; }
  int64_t examples_of(const ProbePlan& plan) const;

  /// What a measurement depends on besides what is chosen; equal settings give equal numbers.
  ProbeAttributes given_settings(const Checkpoint& checkpoint, const std::string& probe) const;

 private:
  std::unique_ptr<Optimizer> optimizer_at(const Checkpoint& checkpoint, const Model& model,
                                          at::ScalarType dtype) const;

  std::string run_folder_;
  RunOptions options_;
  ProbePlan plan_;
  at::Device device_;
  Dataset data_;
  at::Tensor index_;
  std::string subset_hash_;
};

/// A probe of the registry; one that throws has the status failed, and the exception's text as its message. Interrupted,
/// PartnerError and RankLost, after which nothing can be measured, are thrown on.
ProbeResult run_or_fail(const std::string& probe, const AnyOptions& options, const ProbeContext& context);

}  // namespace basin
