// What a Hessian-vector product costs that another process answers, and one within this process; bench/outside_products.py
// compares them and is the other process.
//
//   bench_outside_products REPEATS --words FD --memory FD   asks for the loss once and then for products with one vector;
//                                                           ends by saying {"done": [milliseconds of each]}
//   bench_outside_products REPEATS EXAMPLES                 the same of an MLP within, on random examples; prints the list
#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include <cstdlib>

#include "core/clock.h"
#include "core/error.h"
#include "core/seed.h"
#include "hessian/objective.h"
#include "hessian/outside/outside_problem.h"
#include "models/mlp.h"

namespace {

using namespace basin;

constexpr int64_t kGraphMemory =
    int64_t{1} << 30;  // torch_problem keeps the graph between products, so the one within may too

nlohmann::json products(Problem& problem, int64_t repeats) {
  problem.loss();
  const auto hessian = problem.curvature(Curvature::hessian);
  const at::Tensor v = at::randn({hessian->size()}, make_generator(1)).to(problem.dtype());
  std::vector<double> milliseconds;
  for (int64_t i = 0; i < repeats; ++i) {
    const Clock::time_point start = Clock::now();
    hessian->apply(v);
    milliseconds.push_back(1000 * seconds_since(start));
  }
  return {{"done", milliseconds}};
}

nlohmann::json within(int64_t examples, int64_t repeats) {
  MlpOptions options;
  options.hidden = {1000, 200};
  options.activation = "tanh";
  const InputShape shape{1, 28, 28, 10};
  at::Generator generator = make_generator(1);
  const auto model = std::make_shared<Mlp>(options, shape, generator);
  Objective objective(model, LossKind::cross_entropy, at::randn({examples, 1, 28, 28}, generator),
                      at::randint(0, 10, {examples}, generator, at::kLong), examples, kGraphMemory);
  return products(objective, repeats);
}

void outside(int words, int memory, int64_t repeats) {
  const auto partner = std::make_shared<Partner>(words, memory);
  OutsideProblem problem(partner);
  partner->say(products(problem, repeats).dump());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 6) return 2;
  try {
    const int64_t repeats = std::atoll(argv[1]);
    if (argc == 3)
      fmt::print("{}\n", within(std::atoll(argv[2]), repeats).dump());
    else
      outside(std::atoi(argv[3]), std::atoi(argv[5]), repeats);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
