// Sums over ranks of tensors on GPUs. Without a device the Gpu suite is skipped.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "ranks/gradient_buckets.h"
#include "ranks/rank_group.h"
#include "tests/support/rank_threads.h"

namespace basin {
namespace {

using ::testing::Each;
using testing::on_ranks;

class GpuRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!at::hasCUDA() || at::getNumGPUs() == 0)
      GTEST_SKIP() << "NO CUDA DEVICE: sums over ranks on GPUs are not checked here";
  }
};

/// Small whole numbers: exact in any order.
void sums_and_broadcasts(RankGroup& ranks) {
  const at::Device device = ranks.use_device(at::kCUDA);
  const int n = ranks.size();
  for (const int64_t items : {1, 1000, 3'000'000}) {
    const at::Tensor tensor =
        at::full({items}, ranks.rank() + 1, at::TensorOptions(at::kFloat).device(device));
    const std::unique_ptr<PendingSum> sum = ranks.begin_sum(tensor);
    if (ranks.sum(1.0) != n) throw std::runtime_error("a sum on the host meanwhile");
    sum->wait();
    if (!tensor.eq(n * (n + 1) / 2).all().item<bool>()) throw std::runtime_error("sum");
    tensor.fill_(ranks.rank() + 7);
    ranks.broadcast(tensor);
    if (!tensor.eq(7).all().item<bool>()) throw std::runtime_error("broadcast");
  }
  if (ranks.use_device(at::kCUDA) != device)
    throw std::runtime_error("another device");  // training, then probes
  const std::unique_ptr<RankGroup> one = ranks.first(1);
  if (one && one->sum(2.0) != 2) throw std::runtime_error("first");
}

TEST_F(GpuRanks, SharingOneSumThroughTheHost) { EXPECT_THAT(on_ranks(2, sums_and_broadcasts), Each("")); }

// Two of them: NCCL, where the build has it.
TEST_F(GpuRanks, OfTheirOwnSumThere) {
  if (at::getNumGPUs() < 2) GTEST_SKIP() << "ONE CUDA DEVICE: NCCL is not checked here";
  EXPECT_THAT(on_ranks(2,
                       [](RankGroup& ranks) {
                         sums_and_broadcasts(ranks);
                         if (ranks.use_device(at::kCUDA).index() != ranks.rank())
                           throw std::runtime_error("device");
                       }),
              Each(""));
}

TEST_F(GpuRanks, BucketsSumDuringTheBackwardPass) {
  EXPECT_THAT(on_ranks(2,
                       [](RankGroup& ranks) {
                         const at::Device device = ranks.use_device(at::kCUDA);
                         const auto options = at::TensorOptions(at::kDouble).device(device);
                         std::vector<at::Tensor> w{at::ones({1000}, options), at::ones({8}, options)};
                         for (at::Tensor& tensor : w) tensor.requires_grad_(true);
                         GradientBuckets buckets(w, ranks, 1);
                         for (int pass = 0; pass < 2; ++pass) {
                           for (const at::Tensor& tensor : w) tensor.grad().zero_();
                           buckets.arm();
                           ((ranks.rank() + 1) * (w[0].pow(2).sum() + w[1].pow(3).sum())).backward();
                           if (buckets.begun_on_the_way() != 2) throw std::runtime_error("late");
                           buckets.finish();
                           if (!w[0].grad().eq(6).all().item<bool>()) throw std::runtime_error("first");
                           if (!w[1].grad().eq(9).all().item<bool>()) throw std::runtime_error("second");
                         }
                       }),
              Each(""));
}

}  // namespace
}  // namespace basin
