// defines: build_model(), the network of a run from its options.
#pragma once

#include <memory>
#include <string>

#include "apps/run_options.h"
#include "core/dtype.h"
#include "models/model.h"

namespace basin {

/// The options' network for a data set's images and classes, at its initial weights.
std::shared_ptr<Model> build_model(const RunOptions& options, const Dataset& data, at::ScalarType dtype,
                                   at::Device device);

}  // namespace basin
