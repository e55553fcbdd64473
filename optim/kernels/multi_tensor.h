// defines: StepReport, and momentum_step(), moment_step() and sign_step(): one update of all parameters.
#pragma once

#include <memory>
#include <vector>

#include "optim/kernels/moment_rule.h"
#include "optim/kernels/momentum_rule.h"
#include "optim/kernels/sign_rule.h"
#include "optim/kernels/tensor_lists.h"

namespace basin {

/// One entry per tensor.
struct StepReport {
  std::vector<TensorSums> sums;
  std::vector<double> ratios;
};

/// The ratios that tensors are stepped with, from those that a rule makes of each one's own norms.
std::vector<double> stepped_ratios(const std::vector<double>& live, const std::vector<Treatment>& treatments);

class KernelTables;  // optim/kernels/kernel_tables.h

/// One update. Two passes where there are trust ratios (norms, then weights), else one; a clip of all gradients takes
/// another over the gradients. With TensorLists::clean_gradients one more over them, and SGD ignores them.
///
/// On a CPU by the passes of optim/kernels/cpu_passes.h. The cost is memory traffic: with float32 20 bytes per element for
/// SGD, Lion and signSGD, 28 for LARS, Adam and AdamW, 44 for LAMB.
///
/// On a GPU the same by kernels, all tensors in one launch per pass: the report is left on the device, for last_report().
/// `tables` is the caller's to keep from step to step.
StepReport momentum_step(const MomentumRule& rule, const StepScalars& step,
                         const std::vector<Treatment>& treatments, const TensorLists& lists,
                         std::shared_ptr<KernelTables>& tables);
StepReport moment_step(const MomentRule& rule, StepScalars step, const std::vector<Treatment>& treatments,
                       const TensorLists& lists, std::shared_ptr<KernelTables>& tables);
StepReport sign_step(const SignRule& rule, const StepScalars& step, const std::vector<Treatment>& treatments,
                     const TensorLists& lists, std::shared_ptr<KernelTables>& tables);
/// The report of the last update on a GPU; waits for it.
StepReport last_report(KernelTables& tables);

/// sum_i |a_i - b_i|^2 in float64, of lists that belong together as those of TensorLists do. On a GPU two launches and one wait for all
/// tensors, and `tables`, the caller's, are for nothing else.
double squared_distance(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b,
                        std::shared_ptr<KernelTables>& tables);

}  // namespace basin
