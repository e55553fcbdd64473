// defines: KernelTables and DeviceTables, what the kernels of multi_tensor.cu know about the tensors, and the kernels.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "optim/kernels/moment_rule.h"
#include "optim/kernels/momentum_rule.h"
#include "optim/kernels/sign_rule.h"
#include "optim/kernels/tensor_lists.h"

namespace basin {

/// Device memory, passed to kernels by value.
struct DeviceTables {
  int64_t tensors = 0, chunks = 0;
  const int64_t* tensor_of_chunk = nullptr;  // [chunks]
  const int64_t* first_chunk = nullptr;      // [tensors + 1]
  const int64_t* numel = nullptr;            // [tensors]
  void* const* pointers =
      nullptr;  // [4][tensors]: weights, gradients, first, second; null where there is none
  const Treatment* treatments = nullptr;  // [tensors]
};

/// Kept between updates, so that one uploads nothing where tensors lie where they lay. Tensors have one floating type and
/// one device; every tensor has a chunk, empty ones too.
class KernelTables {
 public:
  /// Takes over what has changed since the last call.
  void set(const TensorLists& lists, const std::vector<Treatment>& treatments);

  DeviceTables on_device() const;
  bool is_double() const { return type_ == at::kDouble; }
  /// The norms of each chunk, from a pass and of an update, and the sums and ratios of each tensor.
  const at::Tensor& norms() const { return norms_; }
  const at::Tensor& sums() const { return sums_; }
  const at::Tensor& ratios() const { return ratios_; }

 private:
  void lay_out(const std::vector<at::Tensor>& weights, const std::vector<Treatment>& treatments);
  at::ScalarType type_ = at::kFloat;
  std::vector<int64_t> pointers_then_, numel_then_;
  int64_t chunks_ = 0;
  at::Tensor tensor_of_chunk_, first_chunk_, numel_, pointers_, treatments_, norms_, sums_, ratios_;
};

/// In multi_tensor.cu. Nothing waits for the device.
void momentum_kernels(const MomentumRule& rule, const StepScalars& step, KernelTables& tables);
void moment_kernels(const MomentRule& rule, const StepScalars& step, KernelTables& tables);
void sign_kernels(const SignRule& rule, const StepScalars& step, KernelTables& tables);
/// Leaves weights less gradients as what changed.
void difference_kernel(KernelTables& tables);
/// [tensors, 5] on the CPU, waiting for the device: sums of squares of weight, gradient, direction and change; ratio.
at::Tensor kernel_report(KernelTables& tables);
int64_t kernel_chunk();         // elements of a chunk
int64_t kernel_partial_size();  // float64 numbers that a chunk's sums take

}  // namespace basin
