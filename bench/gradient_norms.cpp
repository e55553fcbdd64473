// What the norms of single examples' gradients cost, compared with the gradient of the same examples.
//
//   bench_gradient_norms EXAMPLES REPEATS THREADS NETWORK...
//
// prints one line of JSON, a row per network of the registry, with initial weights, on random 32 x 32 images in
// float32, normalisation frozen. In gradients of the same examples: a pass for norms and mean, to gradients
// with normalisation folded into weights, which is how we take them, and as layers of its own, as others do;
// and one for the products with the mean. They take turns, so that other work on the machine meets all; each
// ratio is within one turn. Medians with quartiles.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/build_info.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/runtime.h"
#include "core/seed.h"
#include "hessian/gradients/per_example_gradients.h"
#include "hessian/objective.h"
#include "models/registry.h"

namespace {

using namespace basin;
using Json = nlohmann::ordered_json;

constexpr int64_t kMicroBatch = 250;  // that of probes

double seconds_of(const std::function<void()>& work) {
  const Clock::time_point start = Clock::now();
  work();
  return seconds_since(start);
}

/// Median, then quartiles, to three decimals.
Json spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t last = values.size() - 1;
  const auto rounded = [](double value) { return std::round(value * 1000) / 1000; };
  return {rounded(values[last / 2]), rounded(values[last / 4]), rounded(values[last - last / 4])};
}

Objective objective_of(const std::string& network, int64_t examples, bool fold_norm) {
  const auto model = make_model(network, *find_entry(model_registry(), network, "model").make_options(),
                                {3, 32, 32, 10}, 1, at::kFloat, at::kCPU);
  const at::Tensor images = at::randn({examples, 3, 32, 32}, make_generator(1));
  const at::Tensor labels = at::randint(0, 10, {examples}, make_generator(2), at::kLong);
  return Objective(model, LossKind::cross_entropy, images, labels, kMicroBatch, /*graph_memory=*/0,
                   fold_norm);
}

Json row(const std::string& network, int64_t examples, int64_t repeats) {
  Objective objective = objective_of(network, examples, /*fold_norm=*/true);
  Objective unfolded = objective_of(network, examples, /*fold_norm=*/false);
  PerExampleGradients single(objective);
  at::Tensor mean;
  std::vector<double> gradient, norms, to_unfolded, products;
  for (int64_t i = 0; i <= repeats; ++i) {
    const double one = seconds_of([&] { objective.gradient(); });
    const double sums = seconds_of([&] { mean = single.sums().mean; });
    const double plain = seconds_of([&] { unfolded.gradient(); });
    const double along = seconds_of([&] { single.products({{mean}}); });
    if (i == 0) continue;  // lazy initialisation is nobody's cost
    gradient.push_back(one);
    norms.push_back(sums / one);
    to_unfolded.push_back(sums / plain);
    products.push_back(along / one);
  }
  return {{"network", network},
          {"version", std::string(build_git_commit()).substr(0, 12)},
          {"parameters", objective.parameters().size()},
          {"examples", examples},
          {"gradient_s", spread(gradient)},
          {"norms", spread(norms)},
          {"norms_to_unfolded", spread(to_unfolded)},
          {"products", spread(products)}};
}

}  // namespace

int main(int argc, char** argv) {
  tune_allocator();
  try {
    if (argc < 5) throw ConfigError("usage: bench_gradient_norms EXAMPLES REPEATS THREADS NETWORK...");
    RuntimeOptions runtime;
    runtime.device = "cpu";
    runtime.threads = std::stoll(argv[3]);
    apply_runtime(runtime);
    Json rows = Json::array();
    for (int i = 4; i < argc; ++i) rows.push_back(row(argv[i], std::stoll(argv[1]), std::stoll(argv[2])));
    fmt::print("{}\n", rows.dump());
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_gradient_norms: {}\n", error.what());
    return 1;
  }
}
