// Curvature by Basin on the setting of bench/curvature_setting.py, for bench/curvature.py to set against the peers'.
//
//   bench_curvature SETTING.h5 EXAMPLES SEED THREADS [DEVICE]
//
// prints one line of JSON, a list of rows as those of bench/curvature_peers.py: the same cases, and with them `spectrum` (five
// largest and smallest eigenvalues, density, trace by one shared pass) and `hvp` (what a product costs in gradients). On a GPU all
// examples are one micro-batch, as the peers take them.
//
//   bench_curvature hvp WIDTH EXAMPLES THREADS
//
// prints the last of these alone, for a ResNet-20 of WIDTH channels with initial weights on random images (bench/curvature_cost.py).
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/build_info.h"
#include "core/clock.h"
#include "core/device.h"
#include "core/error.h"
#include "core/runtime.h"
#include "core/seed.h"
#include "hessian/curvature_operator.h"
#include "hessian/krylov_basis.h"
#include "hessian/lanczos.h"
#include "hessian/objective.h"
#include "hessian/spectrum.h"
#include "io/h5.h"
#include "models/registry.h"

namespace {

using namespace basin;
using Json = nlohmann::ordered_json;

struct Setting {
  std::shared_ptr<Model> model;
  at::Tensor images, labels;
  Objective objective(int64_t graph_memory) const {
    const int64_t micro_batch = images.is_cuda() ? labels.size(0) : std::min<int64_t>(125, labels.size(0));
    return {model, LossKind::cross_entropy, images, labels, micro_batch, graph_memory};
  }
};

Setting random_setting(int64_t width, int64_t examples) {
  const auto options = find_entry(model_registry(), "resnet20", "model").make_options();
  OptionTable table;
  options->bind(table);
  table.set_from_text(fmt::format("width={}", width), "bench_curvature");
  return {make_model("resnet20", *options, {3, 32, 32, 10}, 1, at::kFloat, at::kCPU),
          at::randn({examples, 3, 32, 32}, make_generator(1)),
          at::randint(0, 10, {examples}, make_generator(2), at::kLong)};
}

Setting read_setting(const std::string& path, int64_t examples, at::Device device) {
  const h5::File file = h5::File::open(path);
  Setting setting;
  setting.model = make_model("resnet20", *find_entry(model_registry(), "resnet20", "model").make_options(),
                             {3, 32, 32, 10}, 1, at::kFloat, device);
  const at::NoGradGuard no_grad;
  for (const ParameterInfo& p : setting.model->parameter_table())
    at::Tensor(p.tensor).copy_(file.group("model").dataset(p.name).read_tensor());
  for (const auto& [name, tensor] : setting.model->buffer_table())
    at::Tensor(tensor).copy_(file.group("buffers").dataset(name).read_tensor());
  setting.images = file.dataset("images").read_tensor().narrow(0, 0, examples).to(device);
  setting.labels = file.dataset("labels").read_tensor().narrow(0, 0, examples).to(device);
  return setting;
}

std::string version() { return std::string(build_git_commit()).substr(0, 12); }

Json row(const std::string& name, double wall, int64_t products, const TopEigenResult& found) {
  std::vector<double> values;
  double worst = 0;
  for (const Eigenpair& pair : found.largest) {
    values.push_back(pair.value);
    worst = std::max(worst, pair.relative_residual);
  }
  return {{"case", name},      {"hvps", products},      {"wall_s", wall},
          {"residual", worst}, {"eigenvalues", values}, {"version", version()}};
}

Json top(const Setting& setting, int64_t k, uint64_t seed) {
  const Clock::time_point start = Clock::now();
  Objective objective = setting.objective(int64_t{8} << 30);
  CurvatureOperator hessian(objective, Curvature::hessian);
  const TopEigenResult found =
      lanczos_eigenpairs(hessian, {.count = k, .smallest = 0, .tolerance = 1e-3, .seed = seed});
  return row(fmt::format("top{}", k), seconds_since(start), found.products, found);
}

Json clustered(int64_t k, uint64_t seed) {
  const at::Tensor bulk = at::rand({20000}, make_generator(0)) * 1.3 - 0.3;
  const at::Tensor d = at::cat({10 * at::pow(0.93, at::arange(10, at::kFloat)), bulk});
  FunctionOperator op(d.numel(), at::kFloat, [&](const at::Tensor& x) { return d * x; });
  const Clock::time_point start = Clock::now();
  const TopEigenResult found =
      lanczos_eigenpairs(op, {.count = k, .smallest = 0, .tolerance = 1e-3, .seed = seed});
  return row(fmt::format("clustered-top{}", k), seconds_since(start), found.products, found);
}

/// Standard deviation of Hutchinson's single samples, from 40 of them: outside of the time measured.
double hutchinson_deviation(CurvatureOperator& hessian, uint64_t seed) {
  at::Generator generator = make_generator(derive_seed(seed, "hutchinson"));
  std::vector<double> samples;
  for (int i = 0; i < 40; ++i) {
    const at::Tensor z =
        (at::randint(0, 2, {hessian.size()}, generator, at::kFloat) * 2 - 1).to(hessian.device());
    samples.push_back(dot64(z, hessian.apply(z)));
  }
  return mean_of(samples).standard_error * std::sqrt(40.0);
}

Json spectrum(const Setting& setting, uint64_t seed) {
  const Clock::time_point start = Clock::now();
  Objective objective = setting.objective(int64_t{8} << 30);
  CurvatureOperator hessian(objective, Curvature::hessian);
  SpectrumOptions options;
  options.pairs = {.count = 5, .smallest = 1, .tolerance = 1e-3, .seed = seed};
  const SharedSpectrum found = shared_spectrum(hessian, options);
  const double wall = seconds_since(start);
  const double hutchinson =
      hutchinson_deviation(hessian, seed) / std::sqrt(static_cast<double>(found.products));
  Json all = row("spectrum", wall, found.products, found.pairs);
  all.update({{"status", to_string(found.pairs.status)},
              {"pair_hvps", found.pairs.products},
              {"lambda_min", found.pairs.smallest.front().value},
              {"starts", found.starts.size()},
              {"trace", found.trace.value},
              {"trace_error", found.trace.standard_error},
              {"hutchinson_error_at_equal_hvps", hutchinson}});
  return all;
}

double best_of(int repeats, at::Device device, const std::function<void()>& work) {
  double best = 1e300;
  for (int i = 0; i < repeats; ++i) {
    wait_for(device);
    const Clock::time_point start = Clock::now();
    work();
    wait_for(device);
    best = std::min(best, seconds_since(start));
  }
  return best;
}

/// Least seconds of five; products after the first.
Json cost(const Setting& setting) {
  Objective kept = setting.objective(int64_t{16} << 30), rebuilt = setting.objective(0);
  CurvatureOperator with_graph(kept, Curvature::hessian), without(rebuilt, Curvature::hessian);
  const at::Device device = setting.images.device();
  const at::Tensor v = at::randn({with_graph.size()}, make_generator(1)).to(device);
  with_graph.apply(v);
  const double gradient = best_of(5, device, [&] { rebuilt.gradient(); });
  const double retained = best_of(5, device, [&] { with_graph.apply(v); });
  const double anew = best_of(5, device, [&] { without.apply(v); });
  return {{"case", "hvp"},
          {"version", version()},
          {"parameters", with_graph.size()},
          {"examples", kept.examples()},
          {"gradient_s", gradient},
          {"retained_s", retained},
          {"rebuilt_s", anew},
          {"retained_gradients", retained / gradient},
          {"rebuilt_gradients", anew / gradient},
          {"graph_bytes", with_graph.bytes_kept()}};
}

at::Device use(const std::string& device, int64_t threads) {
  return apply_runtime({.device = device, .threads = threads});
}

int run(const std::string& path, int64_t examples, uint64_t seed, int64_t threads, const std::string& where) {
  const at::Device device = use(where, threads);
  const Setting setting = read_setting(path, examples, device);
  // Lazy initialisation, of second derivatives too, is nobody's cost.
  Objective objective = setting.objective(0);
  CurvatureOperator hessian(objective, Curvature::hessian);
  hessian.apply(at::ones({hessian.size()}, at::TensorOptions(at::kFloat).device(device)));
  Json rows = {top(setting, 1, seed), top(setting, 5, seed), spectrum(setting, seed), cost(setting)};
  if (device.is_cpu()) {  // so small a matrix is no work for a GPU
    rows.push_back(clustered(1, seed));
    rows.push_back(clustered(5, seed));
  }
  fmt::print("{}\n", rows.dump());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  tune_allocator();
  try {
    if (argc != 5 && argc != 6)
      throw ConfigError(
          "usage: bench_curvature SETTING.h5 EXAMPLES SEED THREADS [DEVICE], or hvp WIDTH EXAMPLES THREADS");
    if (std::string(argv[1]) == "hvp") {
      use("cpu", std::stoll(argv[4]));
      const Json rows = Json::array({cost(random_setting(std::stoll(argv[2]), std::stoll(argv[3])))});
      fmt::print("{}\n", rows.dump());
      return 0;
    }
    return run(argv[1], std::stoll(argv[2]), std::stoull(argv[3]), std::stoll(argv[4]),
               argc > 5 ? argv[5] : "cpu");
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_curvature: {}\n", error.what());
    return 1;
  }
}
