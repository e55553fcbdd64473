// Time of an optimiser's update, for bench/optimizers.py to set against PyTorch's.
//
//   bench_optimizers THREADS DEVICE
//
// answers each line METHOD SIZES SECONDS NORMS_EVERY of its input by one of JSON: steps timed, seconds per step (median), parameters.
//
// SIZES is "small" (the tensors of small_cnn 16-32-64) or "large" (25.6 M weights in 161 tensors, as ResNet-50 has them).
// NORMS_EVERY: steps between those that take norms; 0: what the trainer does.
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/clock.h"
#include "core/device.h"
#include "core/math/statistics.h"
#include "core/runtime.h"
#include "core/seed.h"
#include "optim/registry.h"
#include "trainers/tables.h"

namespace {

using namespace basin;

constexpr int kWarmUp = 3;
constexpr int64_t kLayersEvery = 100;  // as in a run of 20,000 updates

ParameterInfo parameter(const std::string& layer, ParameterKind kind, const std::vector<int64_t>& sizes,
                        at::Device device) {
  at::Generator generator = make_generator(1);
  const at::Tensor values = at::empty(sizes, at::kFloat).normal_(0, 0.1, generator).to(device);
  ParameterInfo info{layer + "." + to_string(kind), layer, kind, values.requires_grad_(true)};
  at::Tensor(info.tensor).mutable_grad() = at::full_like(info.tensor.detach(), 0.01);
  return info;
}

std::vector<ParameterInfo> small(at::Device device) {
  std::vector<ParameterInfo> all;
  int64_t channels = 3;
  for (int64_t width : {16, 32, 64}) {
    const std::string layer = "conv" + std::to_string(width);
    all.push_back(parameter(layer, ParameterKind::weight, {width, channels, 3, 3}, device));
    all.push_back(parameter(layer, ParameterKind::bias, {width}, device));
    channels = width;
  }
  all.push_back(parameter("fc", ParameterKind::weight, {10, 1024}, device));
  all.push_back(parameter("fc", ParameterKind::bias, {10}, device));
  return all;
}

/// ResNet-50's convolutions, norms and last layer.
std::vector<ParameterInfo> large(at::Device device) {
  std::vector<ParameterInfo> all;
  const auto conv = [&](int64_t out, int64_t in, int64_t side) {
    const std::string layer = "conv" + std::to_string(all.size());
    all.push_back(parameter(layer, ParameterKind::weight, {out, in, side, side}, device));
    all.push_back(parameter(layer, ParameterKind::norm_weight, {out}, device));
    all.push_back(parameter(layer, ParameterKind::norm_bias, {out}, device));
  };
  conv(64, 3, 7);
  int64_t in = 64;
  for (const auto& [width, blocks] : {std::pair<int64_t, int>{64, 3}, {128, 4}, {256, 6}, {512, 3}}) {
    for (int block = 0; block < blocks; ++block) {
      conv(width, in, 1);
      conv(width, width, 3);
      conv(4 * width, width, 1);
      if (block == 0) conv(4 * width, in, 1);
      in = 4 * width;
    }
  }
  all.push_back(parameter("fc", ParameterKind::weight, {1000, 2048}, device));
  all.push_back(parameter("fc", ParameterKind::bias, {1000}, device));
  return all;
}

nlohmann::ordered_json measured(const std::string& method, const std::string& sizes, double seconds,
                                int64_t every, at::Device device) {
  const std::vector<ParameterInfo> parameters = sizes == "small" ? small(device) : large(device);
  const OptimizerEntry& entry = find_entry(optimizer_registry(), method, "optimizer");
  const auto optimizer = entry.make(parameters, *entry.make_options());
  optimizer->set_learning_rate(1e-4);
  int64_t count = 0;
  for (const ParameterInfo& p : parameters) count += p.tensor.numel();
  if (every == 0) every = norms_every(count, kLayersEvery);

  std::vector<double> times;
  const Clock::time_point start = Clock::now();
  while (static_cast<int>(times.size()) < kWarmUp + 5 || seconds_since(start) < seconds) {
    optimizer->take_norms(has_layers_row(static_cast<int64_t>(times.size()) + 1, every));
    const Clock::time_point before = Clock::now();
    optimizer->step();
    wait_for(device);
    times.push_back(seconds_since(before));
  }
  times.erase(times.begin(), times.begin() + kWarmUp);
  return {{"method", method},
          {"steps", times.size()},
          {"step_s", median(times)},
          {"parameters", count},
          {"tensors", parameters.size()}};
}

void answer_all(int64_t threads, const std::string& where) {
  RuntimeOptions runtime;
  runtime.device = where;
  runtime.threads = threads;
  const at::Device device = apply_runtime(runtime);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string method, sizes;
    double seconds = 0;
    int64_t every = 0;
    words >> method >> sizes >> seconds >> every;
    std::cout << measured(method, sizes, seconds, every, device).dump() << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  basin::tune_allocator();
  if (argc != 3) {
    fmt::print(stderr, "usage: bench_optimizers THREADS DEVICE\n");
    return 2;
  }
  try {
    answer_all(std::stoll(argv[1]), argv[2]);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_optimizers: {}\n", error.what());
    return 1;
  }
}
