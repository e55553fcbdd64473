// defines: build_model() and scalar_type(), the parts of a run from its options.
#pragma once

#include <memory>
#include <string>

#include "apps/run_options.h"
#include "models/model.h"

namespace basin {

at::ScalarType scalar_type(const std::string& dtype);  // "float32" | "float64"

/// The options' network for a data set's images and classes, at its initial weights.
std::shared_ptr<Model> build_model(const RunOptions& options, const Dataset& data, at::ScalarType dtype,
                                   at::Device device);

}  // namespace basin
