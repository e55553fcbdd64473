// What is measured on several ranks is what one process measures, but for the order of its sums.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <mutex>

#include "hessian/gradients/per_example_gradients.h"
#include "hessian/objective.h"
#include "hessian/top_eigenpairs.h"
#include "landscape/point_evaluator.h"
#include "tests/support/rank_threads.h"
#include "tests/support/tiny_models.h"

namespace basin::testing {
namespace {

using ::testing::Each;

constexpr double kOtherOrder = 1e-12;  // float64 sums of 23 examples in another order

using Numbers = std::map<std::string, at::Tensor>;

/// Everything that goes by examples, of a network with batch norm: 23 examples, 5 at a time.
Numbers measured(const RankGroup& ranks) {
  const std::shared_ptr<Model> model = tiny_model("small_cnn", {"norm=batch"});
  const TinyBatch batch = tiny_batch(tiny_image_shape(), 23);
  Objective objective(model, LossKind::cross_entropy, batch.images, batch.labels, 5);
  objective.share_over(ranks);
  Numbers numbers;
  const auto number = [](double value) { return at::full({}, value, at::kDouble); };
  double loss_with_gradient = NAN;
  numbers["loss"] = number(objective.loss());
  numbers["accuracy"] = number(objective.accuracy());
  numbers["gradient"] = objective.gradient(&loss_with_gradient);
  numbers["loss with gradient"] = number(loss_with_gradient);
  const at::Tensor few = at::tensor({1, 5, 22}, at::kLong);
  numbers["gradient over three"] = objective.gradient_over(few);
  numbers["loss of three"] = number(objective.part(few)->loss());
  const at::Tensor v = at::linspace(-1, 1, objective.parameters().size(), at::kDouble);
  for (const Curvature kind : {Curvature::hessian, Curvature::gauss_newton, Curvature::gradient_covariance}) {
    const auto products = objective.curvature(kind);
    numbers[fmt::format("product {}", static_cast<int>(kind))] = products->apply(v);
    numbers[fmt::format("product {} again", static_cast<int>(kind))] = products->apply(v);
  }
  const auto hessian = objective.curvature(Curvature::hessian);
  const TopEigenResult top = top_eigenpairs(*hessian, {.count = 2, .tolerance = 1e-10, .seed = 3});
  numbers["eigenvalues"] = at::tensor({top.largest[0].value, top.largest[1].value}, at::kDouble);
  PerExampleGradients single(objective);
  const ExampleSums sums = single.sums(true);
  numbers["squared norms"] = sums.squared_norms;
  numbers["mean"] = sums.mean;
  numbers["mean square"] = sums.mean_square;
  numbers["products"] = single.products({{v, v}})[0];
  PointEvaluator evaluator({&objective, batch.labels}, {},
                           {.statistics = StatisticsMode::reset, .ghost_batch = 6});
  const PointScore score = evaluator.at(evaluator.origin() * 1.1, true);
  numbers["loss at a point"] =
      at::tensor({score.train.loss, score.train.loss_error, score.train.accuracy}, at::kDouble);
  numbers["losses at a point"] = score.train.losses;
  numbers["hits at a point"] = score.train.correct.to(at::kDouble);
  return numbers;
}

TEST(MeasuredOnRanks, IsWhatOneProcessMeasures) {
  const Numbers alone = measured(RankGroup::alone());
  for (const int ranks :
       {2, 3, 7}) {  // with 7 some have one micro-batch, and three examples are too few for all
    std::mutex mutex;
    std::map<int, Numbers> by_rank;
    ASSERT_THAT(on_ranks(ranks,
                         [&](RankGroup& group) {
                           Numbers mine = measured(group);
                           const std::lock_guard lock(mutex);
                           by_rank[group.rank()] = std::move(mine);
                         }),
                Each(""));
    for (const auto& [name, expected] : alone) {
      SCOPED_TRACE(fmt::format("{} on {} ranks", name, ranks));
      const at::Tensor first = by_rank[0].at(name);
      EXPECT_LE((first - expected).norm().item<double>(),
                kOtherOrder * (expected.norm().item<double>() + 1e-3));
      for (const auto& [rank, numbers] : by_rank) EXPECT_TRUE(numbers.at(name).equal(first)) << rank;
    }
  }
}

TEST(MeasuredOnRanks, MicroBatchesAreSharedEvenly) {
  const std::shared_ptr<Model> model = tiny_mlp();
  const TinyBatch batch = tiny_batch(tiny_shape(), 24);
  EXPECT_THAT(on_ranks(3,
                       [&](RankGroup& group) {
                         Objective objective(tiny_mlp(), LossKind::cross_entropy, batch.images, batch.labels,
                                             100);
                         objective.share_over(group);
                         if (objective.micro_batch() != 8 || objective.micro_batches_here().count() != 1)
                           throw std::runtime_error("uneven");
                       }),
              Each(""));
}

}  // namespace
}  // namespace basin::testing
