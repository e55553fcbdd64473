// What each probe costs: its time in gradients of the same examples, and the passes that it says it made.
//
//   bench_probe_costs EXAMPLES THREADS UPDATES NETWORK...
//
// For each network of the registry, after UPDATES steps of gradient descent on EXAMPLES of the embedded
// images: the seconds of one gradient, one forward pass and one Hessian-vector product, and a Markdown row
// for each probe of the registry with its default options, float32. A gradient is the median of nine,
// measured right before each probe, so that other work on the machine meets both.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstdlib>

#include "core/build_info.h"
#include "core/clock.h"
#include "core/device.h"
#include "core/error.h"
#include "core/math/statistics.h"
#include "core/runtime.h"
#include "data/dataset.h"
#include "data/load.h"
#include "data/network_inputs.h"
#include "hessian/curvature_operator.h"
#include "models/registry.h"
#include "optim/registry.h"
#include "probes/registry.h"

namespace {

using namespace basin;

constexpr int64_t kMicroBatch = 250, kGraphMemory = 1024;  // MiB; those of a study
constexpr double kRate = 0.02, kMomentum = 0.9;

double median_seconds(const std::function<void()>& work) {
  std::vector<double> seconds;
  for (int i = 0; i < 9; ++i) {
    const Clock::time_point start = Clock::now();
    work();
    seconds.push_back(seconds_since(start));
  }
  return median(std::move(seconds));
}

Objective objective_of(const std::string& network, int64_t examples) {
  const Dataset data = load_dataset({});
  const at::Tensor index = hashed_subset(data.train, examples);
  const auto model = make_model(network, *find_entry(model_registry(), network, "model").make_options(),
                                {3, 32, 32, data.classes()}, 1, at::kFloat, at::kCPU);
  return Objective(model, LossKind::cross_entropy,
                   network_inputs(data, data.train, index, at::kFloat, at::kCPU),
                   data.train.labels.index_select(0, index), kMicroBatch, kGraphMemory * kMebibyte);
}

void descend(Objective& objective, int64_t updates) {
  at::Tensor step;
  for (int64_t i = 0; i < updates; ++i) {
    const at::Tensor gradient = objective.gradient();
    step = step.defined() ? step * kMomentum + gradient : gradient;
    objective.parameters().scatter(objective.parameters().gather() - kRate * step);
  }
}

/// As text; "-" where the probe doesn't say.
std::string passes(const ProbeResult& result, const std::string& key) {
  for (const auto& [name, value] : result.attributes) {
    if (name != key) continue;
    if (const auto* whole = std::get_if<int64_t>(&value)) return std::to_string(*whole);
    if (const auto* real = std::get_if<double>(&value)) return fmt::format("{:.4g}", *real);
  }
  return "-";
}

void print_costs(const std::string& network, int64_t examples, int64_t updates) {
  Objective objective = objective_of(network, examples);
  const at::Tensor start = objective.parameters().gather();
  descend(objective, updates);
  const OptimizerEntry& sgd = find_entry(optimizer_registry(), "sgd", "optimizer");
  const auto optimizer = sgd.make(objective.parameters().parameters(), *sgd.make_options());
  const auto gradient_seconds = [&] { return median_seconds([&] { objective.gradient(); }); };
  const double gradient = gradient_seconds(), forward = median_seconds([&] { objective.loss(); });
  CurvatureOperator hessian(objective, Curvature::hessian);
  const at::Tensor v = objective.gradient();
  const double product = median_seconds([&] { hessian.apply(v); });
  fmt::print(
      "{}: {} parameters, {} images, loss {:.3f}, {}; a gradient {:.3g} s, a forward pass {:.2f} "
      "and a product {:.2f} gradients\n",
      network, start.numel(), examples, objective.loss(), std::string(build_git_commit()).substr(0, 12),
      gradient, forward / gradient, product / gradient);
  for (const ProbeEntry& entry : probe_registry()) {
    ProbeContext context{objective, 1, examples, "", "train", optimizer.get(), kRate};
    context.initial_weights = start;
    const double unit = gradient_seconds();
    const ProbeResult result = entry.make(*entry.make_options())->run(context);
    fmt::print("| `{}` | {:.1f} | {} | {} | {} | {} |\n", entry.name, result.seconds / unit,
               passes(result, "gradients"), passes(result, "hvps"), passes(result, "forwards"),
               to_string(result.status));
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  tune_allocator();
  try {
    if (argc < 5) throw ConfigError("usage: bench_probe_costs EXAMPLES THREADS UPDATES NETWORK...");
    RuntimeOptions runtime;
    runtime.device = "cpu";
    runtime.threads = std::stoll(argv[2]);
    apply_runtime(runtime);
    for (int i = 4; i < argc; ++i) print_costs(argv[i], std::stoll(argv[1]), std::stoll(argv[3]));
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_probe_costs: {}\n", error.what());
    return 1;
  }
}
