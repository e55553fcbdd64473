// What a Hessian-vector product costs that another process answers; bench/outside_products.py is that process.
//
//   bench_outside_products REPEATS --words FD --memory FD
//
// asks for the loss once and then for REPEATS products with one vector, and ends by saying {"done": [milliseconds of each]}.
#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include <cstdlib>

#include "core/clock.h"
#include "core/error.h"
#include "core/seed.h"
#include "hessian/outside/outside_problem.h"

int main(int argc, char** argv) {
  using namespace basin;
  if (argc != 6) return 2;
  try {
    const auto partner = std::make_shared<Partner>(std::atoi(argv[3]), std::atoi(argv[5]));
    OutsideProblem problem(partner);
    problem.loss();
    const auto hessian = problem.curvature(Curvature::hessian);
    const at::Tensor v = at::randn({hessian->size()}, make_generator(1)).to(problem.dtype());
    std::vector<double> milliseconds;
    for (int64_t i = 0; i < std::atoll(argv[1]); ++i) {
      const Clock::time_point start = Clock::now();
      hessian->apply(v);
      milliseconds.push_back(1000 * seconds_since(start));
    }
    partner->say(nlohmann::json{{"done", milliseconds}}.dump());
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
