// Inputs by indexing, as on a GPU, against the loops over memory.
#include "data/resident.h"

#include <gtest/gtest.h>

#include "data/load.h"
#include "data/network_inputs.h"
#include "data/registry.h"

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
