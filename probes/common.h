// defines: named() and other helpers that several probes share.
#pragma once

#include <cstdint>
#include <string>

#include "core/math/nan.h"
#include "probes/probe.h"

namespace basin {

struct QuantityNaming {
  std::string name, long_name, definition, units;
};
/// A quantity without a value yet.
Quantity named(const QuantityNaming& naming, UncertaintyKind uncertainty_kind);

/// 0.001 -> "1e-3", 0.0005 -> "5e-4", 0.25 -> "2.5e-1": a form that fits names.
std::string short_scientific(double value);

/// Random groups of `size` of the examples, none in two of them; what is left over is in none. For m-sharpness:
/// smaller groups are sharper, so the size that came out stands in a quantity's name.
struct ExampleGroups {
  int64_t size = 0;
  std::vector<at::Tensor> index;
};
/// `size` is what was asked for, or half the examples where that is less: a mean over groups has a standard
/// error from two groups on.
ExampleGroups example_groups(int64_t examples, int64_t size, uint64_t seed);

}  // namespace basin
