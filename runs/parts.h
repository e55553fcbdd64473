// defines: build_model(), build_optimizer(), batch_plan_of() and most_ranks(): network, optimiser and batches of a run from
// its options.
#pragma once

#include <memory>
#include <string>

#include "core/dtype.h"
#include "models/model.h"
#include "optim/optimizer.h"
#include "study/run_options.h"
#include "trainers/batch_plan.h"

namespace basin {

/// The options' network for a data set's images and classes, at its initial weights.
std::shared_ptr<Model> build_model(const RunOptions& options, const Dataset& data, at::ScalarType dtype,
                                   at::Device device);

/// The options' optimiser for the model's parameters, as the scaling rule has it, with a fresh state.
std::unique_ptr<Optimizer> build_optimizer(const RunOptions& options, const Model& model);

/// How the run cuts its batches, without building the network.
BatchPlan batch_plan_of(const RunOptions& options);

/// How many ranks can share the run's batch.
int64_t most_ranks(const RunOptions& options);

}  // namespace basin
