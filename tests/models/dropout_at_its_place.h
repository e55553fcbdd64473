// defines: expect_dropout_at_its_place(), what holds of every network's dropout.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/model.h"

namespace basin::testing {

/// In training mode the same masks at the same place alone, where there is dropout at all; none in eval mode.
inline void expect_dropout_at_its_place(Model& model, const at::Tensor& images) {
  model.train();
  const auto at_place = [&](uint64_t seed, const DropoutPlace& place) {
    model.seed_dropout(seed);
    model.set_dropout_place(place);
    return model.forward(images);
  };
  const at::Tensor first = at_place(3, {2, 0});
  EXPECT_TRUE(at::equal(first, at_place(3, {2, 0})));
  for (const at::Tensor& other : {at_place(3, {3, 0}), at_place(3, {2, 4}), at_place(4, {2, 0})})
    EXPECT_EQ(at::equal(first, other), !model.has_dropout());
  model.eval();
  EXPECT_TRUE(at::equal(model.forward(images), model.forward(images)));
}

}  // namespace basin::testing
