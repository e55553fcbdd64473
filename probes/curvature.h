// defines: the probe curvature.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/presets.h"
#include "probes/eigen_quantity.h"

namespace basin {

struct CurvatureOptions : EigenSolverOptions, WithPreset {
  CurvatureOptions();
  std::string solver = "lanczos";  // or power: the largest by modulus and the trace alone
  std::string matrix = "hessian";
  std::vector<std::string> layers;  // empty: all
  std::vector<std::string> kinds;   // of parameters; empty: all
  bool search_copies = false;
  int64_t starts = 4;
  int64_t steps = 6;
  int64_t trace_samples = 14;
  int64_t iterations = 100;       // power: products of a pair at most
  double trace_tolerance = 1e-3;  // power: of the trace's mean, from one sample to the next
  double outlier_share = 0.1;     // of lambda_1
  double density_width = 0.01;    // of lambda_1 - lambda_min
  int64_t density_points = 400;
};
void bind_options(OptionTable& table, CurvatureOptions& options);

/// The spectrum of a curvature matrix from one shared Krylov pass (hessian/spectrum.h): the `count` largest
/// eigenvalues and the smallest, trace and squared Frobenius norm with standard errors, the number of
/// outliers, and the density of eigenvalues with a band, of the Hessian, the Gauss-Newton matrix, the
/// empirical Fisher matrix or the gradient covariance (hessian/curvature_graph.h), whole or restricted to
/// layers or kinds of parameters.
///
/// With solver = "power", part of compat = "pyhessian", that tool's eigenvalues and trace instead
/// (hessian/power_iteration.h): here and not in top_eigenvalues, because they are of both kinds.
///
/// Cost: 15-30 products for the pairs, (starts - 1) steps + trace_samples more: 47-62 by default. Memory: a
/// basis of as many vectors, twice. Definitions and what can go wrong: docs/probes.md#curvature.
std::unique_ptr<Probe> make_curvature(const CurvatureOptions& options);

}  // namespace basin
