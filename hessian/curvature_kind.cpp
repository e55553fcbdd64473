#include "hessian/curvature_kind.h"

namespace basin {

const char* to_string(Curvature kind) {
  switch (kind) {
    case Curvature::hessian:
      return "hessian";
    case Curvature::gauss_newton:
      return "gauss_newton";
    case Curvature::empirical_fisher:
      return "empirical_fisher";
    case Curvature::gradient_covariance:
      return "gradient_covariance";
  }
  return "";
}

}  // namespace basin
