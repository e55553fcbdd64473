// defines: power_eigenpairs() and steady_trace(), eigenvalues and trace by stop rules that ask for no error.
#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/math/statistics.h"
#include "hessian/eigenpairs.h"
#include "hessian/linear_operator.h"

namespace basin {

/// In every quotient of both functions.
inline constexpr double kPowerEpsilon = 1e-6;

struct PowerOptions {
  int64_t count = 1;
  int64_t iterations = 100;  // products of a pair at most
  double tolerance = 1e-3;
};

struct PowerResult {
  SolverStatus status = SolverStatus::converged;
  std::vector<Eigenpair> pairs;     // in the order found
  std::vector<int64_t> iterations;  // of each
  int64_t products = 0;
};

/// Power iteration with deflation as PyHessian has it (Yao, Gholami, Keutzer & Mahoney, IEEE Big Data 2020,
/// arXiv 1912.07145). For each pair, from a normal random start, with u the vectors found before and
/// s(x) = x / (|x| + eps), eps = 1e-6:
///   v <- s(v - sum_j u_j (u_j . v)),  theta = v . A v,  v <- s(A v)
/// until |theta' - theta| < tolerance (|theta'| + eps), theta' being the one before, or `iterations`
/// products. Its value is theta', where it stopped, and the pair's vector the newest v. It finds the
/// eigenvalues of largest modulus, negative ones too, roughly in that order.
///
/// The rule says nothing about the error: where |lambda_2 / lambda_1| is near 1 the quotients hardly move
/// long before they are right. So the residual |A v - theta' v| / |v|, of the v that theta' is the quotient
/// of, is given as well: an eigenvalue lies within it. `converged`: it is at most tolerance |theta'|.
/// `value_bound` is the residual. Cost: a product per iteration. Memory: count + 3 vectors.
PowerResult power_eigenpairs(LinearOperator& op, const PowerOptions& options, at::Generator& generator);

/// Hutchinson's mean of z . A z over independent signs, until |mean - mean'| < tolerance (|mean'| + eps),
/// mean' being the one before (0 at first), or `most` products: PyHessian's trace. The rule looks at the mean
/// it stops, so the mean has a bias, small against its standard error, and the error is that of the z taken as
/// if their number had been fixed.
SampleMean steady_trace(LinearOperator& op, int64_t most, double tolerance, at::Generator& generator);

}  // namespace basin
