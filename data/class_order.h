// defines: refuse_order_by_class(), for batch statistics of consecutive examples.
#pragma once

#include "data/dataset.h"

namespace basin {

/// DataError where the training examples lie by class, so that `batch` consecutive ones aren't alike the whole set: labels change from
/// one example to the next in fewer than half of the places in which they change on average in a random order,
///
///   E[changes] = n - sum_c n_c² / n,   n_c examples of class c.
///
/// Not asked where E is below 64 (the standard deviation is at most sqrt(E), so half of 64 is four of them away), where a batch is the
/// whole set, and where labels aren't one class each. Training batches are drawn at random whatever
/// the order; statistics of batch normalisation are estimated again in the order of the file.
void refuse_order_by_class(const Dataset& data, int64_t batch);

}  // namespace basin
