// defines: maximise_in_cube(), a few iterations of L-BFGS-B over [-1, 1]^p.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>

namespace basin {

/// u [p] float64 on the host -> f(u); writes df/du (same shape and type) to `gradient`.
using CubeFunction = std::function<double(const at::Tensor& u, at::Tensor& gradient)>;

struct CubeMaximum {
  double value = 0;  // best f seen, at `point`
  at::Tensor point;
  double start_value = 0;   // f at the start
  int64_t evaluations = 0;  // of f with its gradient
  int64_t iterations = 0;   // finished ones
  std::string stall;  // why the search ended before its iterations and away from a maximum: what the line
                      // search says. Rounding as a rule: no step gains more than the last digits of f
  bool nonfinite = false;  // f or its gradient was NaN or infinite somewhere; the search ended there
};

/// The best point seen in at most `iterations` iterations of L-BFGS-B (Byrd, Lu, Nocedal, Zhu 1995; LBFGS++
/// with the Moré-Thuente line search) on -f from `start`. Function and variables are scaled by the derivative
/// at the start, so that first steps go to a corner of the cube however flat f is, as they do where L-BFGS-B
/// is run on the loss itself over the weights, and no absolute tolerance ends the search early.
///
/// Every iterate is feasible, so `value` is a lower bound of the maximum. A start where the gradient vanishes
/// exactly is returned as it is: start elsewhere. So does a corner from which every derivative points
/// outwards: a maximum, reached in no iteration. Cost: 1 to 3 evaluations per iteration as a rule, 20 at most.
CubeMaximum maximise_in_cube(const CubeFunction& f, const at::Tensor& start, int64_t iterations);

}  // namespace basin
