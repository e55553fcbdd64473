// Curvature on a CUDA device against the same on the CPU, and what crosses between host and device. Without a
// device the Gpu suite is skipped.
#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <atomic>

#include "core/runtime.h"
#include "core/seed.h"
#include "hessian/curvature_operator.h"
#include "hessian/gradients/per_example_gradients.h"
#include "hessian/lanczos.h"
#include "hessian/objective.h"
#include "hessian/spectrum.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

struct Crossings {
  int64_t scalars, copies;
};

std::atomic<int64_t> scalars{0}, copies{0};

/// Counts, while it lives, scalars read from tensors (each waits for the device) and copies between devices.
/// On a CPU the scalars are the same ones.
class CrossingCount {
 public:
  CrossingCount() {
    scalars = copies = 0;
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback(&see).needsInputs(true).scopes(
        {at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  }
  ~CrossingCount() { at::removeCallback(handle_); }
  Crossings so_far() const { return {scalars, copies}; }

 private:
  static std::unique_ptr<at::ObserverContext> see(const at::RecordFunction& call) {
    const std::string name = call.name();
    if (name == "aten::_local_scalar_dense") ++scalars;
    if (name == "aten::copy_" && call.inputs()[0].toTensor().device() != call.inputs()[1].toTensor().device())
      ++copies;
    return nullptr;
  }
  at::CallbackHandle handle_;
};

Objective network(at::Device device, at::ScalarType type, int64_t graph_memory) {
  const auto model = testing::tiny_model("resnet20", {}, 1, type);
  model->to(device);
  const auto batch = testing::tiny_batch(testing::tiny_image_shape(), 24, 1, type);
  return {model, LossKind::cross_entropy, batch.images, batch.labels, /*micro_batch=*/10, graph_memory};
}

Crossings of_eigenpairs(at::Device device, int64_t& products) {
  Objective objective = network(device, at::kFloat, int64_t{1} << 30);
  CurvatureOperator hessian(objective, Curvature::hessian);
  hessian.apply(at::ones({hessian.size()}, at::TensorOptions(at::kFloat).device(device)));
  const CrossingCount count;
  products = lanczos_eigenpairs(hessian, {.count = 3, .smallest = 1, .tolerance = 1e-3}).products;
  return count.so_far();
}

// A step reads |A v|'s remainder, v . A v and whether the weights are those of the graphs; its column of the
// projected matrix is one copy. What the four pairs' residuals and the start take comes on top, once or,
// where a residual turns out larger than its estimate, a few times.
constexpr int64_t kScalarsAStep = 4, kScalarsAPair = 5, kCollections = 3;

TEST(Lanczos, AStepReadsAFewScalars) {
  int64_t products = 0;
  const Crossings crossings = of_eigenpairs(at::kCPU, products);
  EXPECT_GT(crossings.scalars, products);
  EXPECT_LE(crossings.scalars, kScalarsAStep * products + kCollections * 4 * kScalarsAPair);
}

class GpuCurvature : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!at::hasCUDA()) GTEST_SKIP() << "NO CUDA DEVICE: curvature on a GPU is not checked here";
    apply_runtime({.device = "cuda", .threads = 1});
  }
};

TEST_F(GpuCurvature, ProductsAreThoseOfTheCpu) {
  for (const Curvature kind : {Curvature::hessian, Curvature::gauss_newton, Curvature::empirical_fisher,
                               Curvature::gradient_covariance}) {
    for (const auto type : {at::kDouble, at::kFloat}) {
      for (const int64_t memory : {int64_t{0}, int64_t{1} << 30}) {
        Objective here = network(at::kCPU, type, memory), there = network(at::kCUDA, type, memory);
        CurvatureOperator cpu(here, kind), gpu(there, kind);
        const at::Tensor v = at::randn({cpu.size()}, make_generator(2), at::kDouble).to(type);
        for (int repeat = 0; repeat < 2; ++repeat) {  // the second from kept graphs
          const at::Tensor expected = cpu.apply(v), found = gpu.apply(v.to(at::kCUDA));
          EXPECT_TRUE(found.is_cuda());
          // Sums in another order; in float32 over some hundred terms of both signs.
          EXPECT_LE((found.cpu() - expected).norm().item<double>() / expected.norm().item<double>(),
                    type == at::kDouble ? 1e-11 : 2e-5);
        }
      }
    }
  }
}

// The backward pass hands gradients over on a thread of its own; resnet20 has convolutions, norms and a
// linear layer, and 24 examples make three micro-batches.
TEST_F(GpuCurvature, SingleGradientsAreThoseOfTheCpu) {
  for (const auto type : {at::kDouble, at::kFloat}) {
    Objective here = network(at::kCPU, type, 0), there = network(at::kCUDA, type, 0);
    PerExampleGradients cpu(here), gpu(there);
    const ExampleSums expected = cpu.sums(/*squares=*/true), found = gpu.sums(/*squares=*/true);
    const auto expect_same = [&](const at::Tensor& a, const at::Tensor& b) {
      EXPECT_TRUE(a.is_cuda());
      // Sums in another order; in float32 over some hundred terms of both signs.
      EXPECT_LE((a.cpu() - b).norm().item<double>() / b.norm().item<double>(),
                type == at::kDouble ? 1e-11 : 2e-5);
    };
    expect_same(found.squared_norms, expected.squared_norms);
    expect_same(found.mean, expected.mean);
    expect_same(found.mean_square, expected.mean_square);
    expect_same(gpu.products({{expected.mean.to(at::kCUDA)}})[0], cpu.products({{expected.mean}})[0]);
  }
}

TEST_F(GpuCurvature, EigenvaluesAreThoseOfTheCpu) {
  Objective here = network(at::kCPU, at::kFloat, 0), there = network(at::kCUDA, at::kFloat, 1 << 30);
  CurvatureOperator cpu(here, Curvature::hessian), gpu(there, Curvature::hessian);
  SpectrumOptions options;
  options.pairs = {.count = 4, .smallest = 1, .tolerance = 1e-4};
  const SharedSpectrum a = shared_spectrum(cpu, options), b = shared_spectrum(gpu, options);
  ASSERT_EQ(b.pairs.status, SolverStatus::converged);
  for (size_t i = 0; i < 4; ++i) {
    const Eigenpair &x = a.pairs.largest[i], &y = b.pairs.largest[i];
    EXPECT_TRUE(y.vector.is_cuda());
    EXPECT_NEAR(x.value, y.value, x.residual + y.residual);
  }
  EXPECT_NEAR(a.trace.value, b.trace.value, 4 * (a.trace.standard_error + b.trace.standard_error));
}

TEST_F(GpuCurvature, NoVectorLeavesTheDevice) {
  int64_t products = 0;
  const Crossings crossings = of_eigenpairs(at::kCUDA, products);
  EXPECT_LE(crossings.scalars, kScalarsAStep * products + kCollections * 4 * kScalarsAPair);
  // The random start, one column per step, a rotation for each pair lifted.
  EXPECT_LE(crossings.copies, 1 + products + kCollections * 4 * 2);
  RecordProperty("scalars_a_product", static_cast<double>(crossings.scalars) / static_cast<double>(products));
}

}  // namespace
}  // namespace basin
