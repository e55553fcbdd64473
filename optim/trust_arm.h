// defines: TrustArm, what stands in the place of LARS's and LAMB's trust ratios.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/options.h"
#include "core/parameter.h"
#include "optim/kernels/elementwise.h"

namespace basin {

/// One question: what of the trust ratio acts? r_i is the ratio of tensor i as the method has it (max_ratio included), f_i a given
/// one. Over the tensors that may have a ratio, T of them:
///   live             r_i
///   mean             1/T sum_j r_j: one number at each update
///   shuffled         r_p(i), p one cycle through all T (no tensor keeps its own), the same in the whole run
///   frozen           f_i: static rates by layer
///   frozen_mean      1/T sum_j f_j
///   frozen_shuffled  f_p(i)
/// p is drawn by Sattolo's algorithm from trust_shuffle alone, so runs of different seeds share it. f_i is the whole factor on top of
/// the learning rate, as /layers of run.h5 reports it: neither a coefficient nor max_ratio is applied. Tensors excluded from trust ratios keep what
/// the method gives them. Where a ratio is given, P of Optimizer::preconditioner() doesn't move with the gradient through it.
///
/// Cost: mean, shuffled: none to speak of. What can go wrong: the arithmetic mean of ratios that differ by powers of ten is mostly the
/// largest; a rate that was tuned for `live` isn't tuned for another arm.
struct TrustArm {
  std::string trust = "live";
  std::vector<std::string> trust_ratios = {};  // "conv1.weight=0.0123", for the frozen arms
  std::string trust_from;  // a run whose mean ratios these are; read by the study, not here
  int64_t trust_shuffle = 1;
  std::string trust_path;     // the record of that run where it lies outside of the study
  std::string trust_setting;  // that run's config_id

  bool frozen() const { return trust.rfind("frozen", 0) == 0; }
};
/// For option tables: the keys are the fields' names.
void bind_trust_arm(OptionTable& table, TrustArm& arm);

/// "name=value" of trust_ratios.
std::string trust_ratio_text(const std::string& parameter, double ratio);

/// Where each tensor has its ratio from, into its treatment. ConfigError in one line, beginning with `method`: a tensor without a given
/// ratio, a name that is no tensor with a trust ratio, fewer than two tensors to shuffle.
void set_ratio_sources(const std::string& method, const TrustArm& arm,
                       const std::vector<ParameterInfo>& parameters, std::vector<Treatment>& treatments);

/// Whether all ratios are given.
bool has_given_ratios(const std::vector<Treatment>& treatments);
/// For Optimizer::trust_ratio_definition(): `live` is what the live ratio is.
std::string arm_definition(const std::string& arm, const std::string& live);

}  // namespace basin
