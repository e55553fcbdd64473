// Inputs by indexing, as on a GPU, against the loops over memory.
#include "data/resident.h"

#include <gtest/gtest.h>

#include "data/load.h"
#include "data/network_inputs.h"
#include "data/registry.h"
#include "tests/support/number_set.h"

namespace basin::testing {
namespace {

Dataset data_of(const std::string& set) {
  DataOptions options;
  options.set = set;
  return load_dataset(options);
}

TEST(Resident, InputsByIndexingHaveTheBitsOfTheLoop) {
  for (const DatasetEntry& entry : dataset_registry()) {
    if (entry.needs_path) continue;  // the user's files, which tests don't have
    SCOPED_TRACE(entry.name);
    const Dataset data = data_of(entry.name), there = on_device(data, at::kCPU);
    if (!data.train.has_pictures()) continue;  // numbers and tokens are gathered in one way
    const at::Tensor index = at::tensor({17, 4, 0, 17, 39}, at::kLong);
    for (const auto dtype : {at::kFloat, at::kDouble}) {
      for (const Split* split : {&there.train, &there.test}) {
        const at::Tensor gathered = gathered_inputs(there, *split, index, dtype);
        EXPECT_EQ(gathered.scalar_type(), dtype);
        EXPECT_TRUE(gathered.is_contiguous(at::MemoryFormat::ChannelsLast));
        EXPECT_TRUE(at::equal(gathered, network_inputs(there, *split, index, dtype, at::kCPU)));
      }
    }
  }
}

// As they lie on a GPU. One difference and one quotient in float64, whenever they are taken.
TEST(Resident, NumbersNormalisedBeforehandHaveTheSameBits) {
  const Dataset data = number_set();
  Dataset there = data;
  normalise_numbers(there);
  const at::Tensor index = at::tensor({17, 4, 49, 17}, at::kLong);
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    const at::Tensor here = network_inputs(data, data.train, index, dtype, at::kCPU);
    EXPECT_FALSE(at::equal(here, data.train.inputs.index_select(0, index).to(dtype)));
    EXPECT_TRUE(at::equal(gathered_inputs(there, there.train, index, dtype), here));
    EXPECT_TRUE(at::equal(network_inputs(there, there.test, index, dtype, at::kCPU),
                          network_inputs(data, data.test, index, dtype, at::kCPU)));
  }
  EXPECT_TRUE(there.mean.empty() && data.mean.size() == 3);
}

TEST(Resident, ChannelsLastImagesGiveTheSame) {
  Dataset data = data_of("cifar10-5k");
  const at::Tensor index = at::arange(7, at::kLong);
  const at::Tensor expected = gathered_inputs(data, data.test, index, at::kFloat);
  data.test.inputs = data.test.inputs.contiguous(at::MemoryFormat::ChannelsLast);  // as on a device
  EXPECT_TRUE(at::equal(gathered_inputs(data, data.test, index, at::kFloat), expected));
}

TEST(Resident, CopiesNothingOnTheCpu) {
  const Dataset data = data_of("synthetic"), there = on_device(data, at::kCPU);
  EXPECT_EQ(there.train.inputs.data_ptr(), data.train.inputs.data_ptr());
  EXPECT_EQ(there.test.labels.data_ptr(), data.test.labels.data_ptr());
  EXPECT_EQ(there.validation.size(), 0);
}

}  // namespace
}  // namespace basin::testing
