// defines: the probe preconditioned_curvature.
#pragma once

#include <memory>
#include <string>

#include "probes/eigen_quantity.h"

namespace basin {

struct PreconditionedCurvatureOptions : EigenSolverOptions {};
void bind_options(OptionTable& table, PreconditionedCurvatureOptions& options);

/// The `count` largest eigenvalues of P^{-1/2} H P^{-1/2} (in P's own basis, if it has one), which are those of P^{-1} H: the Hessian as the
/// run's optimiser sees it, P its Optimizer::preconditioner() at the checkpoint (1 for SGD, Adam's
/// denominator, LAMB's denominator over the trust ratio, the inverse of LARS's local rates, Kronecker products of matrices for
/// Shampoo and SOAP; over lr_factors), and
/// learning_rate times the first, the dimensionless number that is compared with a method's stability limit, where it
/// has one.
///
/// A bias that a batch norm cancels is held fixed (RunPreconditioner): with it Adam's and LAMB's numbers are meaningless.
///
/// Cost: 5-25 Hessian-vector products; LARS's P takes the gradient over the examples measured besides.
/// Memory: a basis of as many vectors, twice. What can go wrong: for LARS and LAMB the number is a gauge and
/// no limit, since P moves with the gradient; near a stationary point LARS's P goes to 0 with it.
/// Definitions: docs/probes.md.
std::unique_ptr<Probe> make_preconditioned_curvature(const PreconditionedCurvatureOptions& options);

}  // namespace basin
