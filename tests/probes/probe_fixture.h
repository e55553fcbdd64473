// defines: running a probe of the registry on an objective, with options as text.
#pragma once

#include <string>
#include <vector>

#include "core/registry.h"
#include "probes/registry.h"
#include "tests/optim/optim_support.h"
#include "tests/support/settings.h"

namespace basin::testing {

/// `train_examples` 0: the problem has all of them. Without an optimiser, plain SGD's; its rate is 0.1.
inline ProbeResult run_probe(const std::string& name, Problem& problem,
                             const std::vector<std::string>& settings = {}, uint64_t seed = 11,
                             int64_t train_examples = 0, const Optimizer* optimizer = nullptr,
                             const at::Tensor& initial_weights = {}, int64_t batch_size = 0) {
  const ProbeEntry& entry = find_entry(probe_registry(), name, "probe");
  const std::unique_ptr<Optimizer> plain =
      make_test_optimizer("sgd", {"momentum=0"}, problem.parameters().parameters());
  ProbeContext context{problem, seed,    train_examples > 0 ? train_examples : problem.examples(),
                       "0123",  "train", optimizer ? optimizer : plain.get(),
                       0.1};
  context.initial_weights = initial_weights;
  context.batch_size = batch_size;
  return entry.make(*options_with(entry, settings))->run(context);
}

inline const Quantity& quantity(const ProbeResult& result, const std::string& name) {
  for (const Quantity& q : result.quantities) {
    if (q.name == name) return q;
  }
  throw std::out_of_range(name);
}

inline double value_of(const ProbeResult& result, const std::string& name) {
  return quantity(result, name).value.at(0);
}

template <class T>
T attribute(const ProbeResult& result, const std::string& name) {
  for (const auto& [key, value] : result.attributes) {
    if (key == name) return std::get<T>(value);
  }
  throw std::out_of_range(name);
}

}  // namespace basin::testing
