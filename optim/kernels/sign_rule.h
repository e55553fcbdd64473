// defines: SignRule, the constants of Lion and signSGD.
#pragma once

#include "optim/kernels/elementwise.h"

namespace basin {

/// The learning rate is the tensor's own, StepScalars::rate_of(). Plain data, for a GPU evaluates it too.
struct SignRule {
  double blend = 0;  // share of the average in what the sign is taken of
  double keep = 0;   // share of the average that stays in it

  BASIN_HOST_DEVICE SignElement<double> element(const Treatment& tensor, const StepScalars& step) const {
    const double rate = step.rate_of(tensor);
    SignElement<double> e;
    e.blend = blend;
    e.fresh = 1 - blend;
    e.keep = keep;
    e.add = 1 - keep;
    e.shrink = rate * tensor.decay;
    e.rate = rate;
    return e;
  }
};

}  // namespace basin
