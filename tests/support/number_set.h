// defines: number_set(), fifty examples of numbers that are to be normalised by channel.
#pragma once

#include <ATen/ATen.h>

#include "data/dataset.h"

namespace basin::testing {

inline Dataset number_set() {
  Dataset data;
  data.class_names = {"a", "b"};
  data.mean = {0.1, -2, 3};
  data.std = {1.7, 0.3, 1};
  for (Split* split : {&data.train, &data.test}) {
    split->inputs = at::arange(50 * 3 * 4, at::kFloat).view({50, 3, 4}).div(7);
    split->labels = at::zeros({50}, at::kLong);
  }
  return data;
}

}  // namespace basin::testing
