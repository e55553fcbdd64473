// Gradients summed while a backward pass goes on, against autograd of the whole loss in one process.
#include "ranks/gradient_buckets.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "tests/support/rank_threads.h"

namespace basin {
namespace {

using ::testing::Each;
using testing::on_ranks;

/// Two layers and a parameter that the loss doesn't see; float64, one of them channels-last.
std::vector<at::Tensor> parameters() {
  std::vector<at::Tensor> all{
      at::arange(24, at::kDouble).view({2, 3, 2, 2}).contiguous(at::MemoryFormat::ChannelsLast),
      at::linspace(-1, 1, 8, at::kDouble), at::ones({3}, at::kDouble)};
  for (at::Tensor& tensor : all) tensor.requires_grad_(true);
  return all;
}

at::Tensor loss_of(const std::vector<at::Tensor>& w, double x) {
  return (w[0].pow(2) * x).sum() + (w[1].sin() * x * x).sum() * w[0].sum();
}

TEST(GradientBuckets, SumOfTheRanksGradients) {
  std::vector<at::Tensor> whole = parameters();
  (loss_of(whole, 1) + loss_of(whole, 2) + loss_of(whole, 3)).backward();
  for (const int64_t bytes : {int64_t{1}, int64_t{256}, GradientBuckets::kBytes}) {
    const std::vector<std::string> faults = on_ranks(3, [&](RankGroup& ranks) {
      std::vector<at::Tensor> w = parameters();
      GradientBuckets buckets(w, ranks, bytes);
      for (int pass = 0; pass < 2; ++pass) {  // the second finds the first's sums in place
        for (const at::Tensor& tensor : w) tensor.grad().zero_();
        if (ranks.rank() == 0) {  // two losses, and the third rank has none
          loss_of(w, 1).backward();
          buckets.arm();
          loss_of(w, 2).backward();
        } else if (ranks.rank() == 1) {
          buckets.arm();
          loss_of(w, 3).backward();
        }
        buckets.finish();
        for (size_t i = 0; i < 2; ++i) {
          if (!at::allclose(w[i].grad(), whole[i].grad(), 1e-14, 1e-14)) throw std::runtime_error("gradient");
          if (w[i].grad().strides() != w[i].strides()) throw std::runtime_error("layout");
        }
        if (w[2].grad().count_nonzero().item<int64_t>() != 0) throw std::runtime_error("unused");
      }
    });
    EXPECT_THAT(faults, Each("")) << bytes;
  }
}

TEST(GradientBuckets, SumsBeginDuringTheBackwardPass) {
  EXPECT_THAT(on_ranks(2,
                       [](RankGroup& ranks) {
                         std::vector<at::Tensor> w = parameters();
                         w.pop_back();  // else the first bucket waits for what never comes
                         GradientBuckets buckets(w, ranks, 1);
                         buckets.arm();
                         loss_of(w, 1).backward();
                         if (buckets.buckets() != 2 || buckets.begun_on_the_way() != 2)
                           throw std::runtime_error("late");
                         buckets.finish();
                       }),
              Each(""));
}

}  // namespace
}  // namespace basin
