// Adafactor, Shampoo, SOAP and the schedule-free methods against traces computed in numpy (tests/oracles/matrix_golden.py).
#include <gtest/gtest.h>

#include "tests/optim/follow_trace.h"
#include "tests/optim/golden_matrices.h"

namespace basin {
namespace {

using namespace testing;

std::vector<ParameterInfo> matrix_parameters(at::ScalarType dtype) {
  std::vector<ParameterInfo> parameters;
  for (size_t i = 0; i < golden::matrix_names.size(); ++i) {
    ParameterInfo parameter = make_parameter(golden::matrix_names[i], parameter_kind(golden::matrix_kinds[i]),
                                             golden::matrix_start[i], dtype);
    at::Tensor shaped = parameter.tensor.detach().view(golden::matrix_sizes[i]);
    if (shaped.dim() == 4) shaped = shaped.contiguous(at::MemoryFormat::ChannelsLast);
    parameter.tensor = shaped.requires_grad_(true);
    parameters.push_back(parameter);
  }
  return parameters;
}

class GoldenMatrices : public ::testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Traces, GoldenMatrices, ::testing::Range<size_t>(0, golden::matrix_traces.size()),
                         [](const auto& info) {
                           return golden::matrix_traces[info.param].optimizer + std::to_string(info.param);
                         });

// Weights of order 1, five steps. Eigenvectors of statistics whose eigenvalues are a hundredth apart have 1e-14 of rounding, and
// Shampoo's roots of eigenvalues near eps = 1e-6 thirty times that of a step.
TEST_P(GoldenMatrices, Float64) {
  const golden::MatrixTrace& trace = golden::matrix_traces[GetParam()];
  const auto parameters = matrix_parameters(at::kDouble);
  const auto optimizer = make_test_optimizer(trace.optimizer, trace.settings, parameters);
  follow_trace(*optimizer, parameters, golden::matrix_gradients, golden::matrix_rates, trace.steps, 1e-12);
}

// A bias has no decay unless it is asked for, a matrix has; and the last update refreshes SOAP's bases for the second time.
TEST(GoldenMatricesTraces, ReachWhatTheyAreFor) {
  std::set<std::string> methods;
  for (const golden::MatrixTrace& trace : golden::matrix_traces) {
    methods.insert(trace.optimizer);
    EXPECT_EQ(trace.steps.size(), golden::matrix_rates.size());
  }
  EXPECT_EQ(methods.size(), 5U);
}

}  // namespace
}  // namespace basin
