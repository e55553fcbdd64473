#include "data/dataset.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>

#include "core/error.h"
#include "core/hash.h"
#include "data/load.h"
#include "data/network_inputs.h"
#include "data/registry.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_files.h"

namespace basin::testing {
namespace {

using ::testing::HasSubstr;

// All numbers of the embedded set come from numpy and hashlib on the two files.
const Dataset& embedded() {
  static const Dataset data = load_dataset({});
  return data;
}

TEST(Embedded, HasItsCountsAndHashes) {
  const Dataset& data = embedded();
  EXPECT_EQ(data.name, "cifar10-5k");
  EXPECT_EQ(data.pixels, "official");
  EXPECT_EQ(data.sha256, "25286861667ac9a737c4eecbda33e17b7ba3bb19869556b4428311774c4b496b");
  EXPECT_EQ(data.split_hash, "a3d44437f284b46e5d827df6101e63efe16f752040ad67db809c061bc367bde5");
  EXPECT_THAT(values(at::bincount(data.train.labels)),
              ::testing::ElementsAre(508, 515, 478, 484, 527, 469, 497, 512, 518, 492));
  EXPECT_THAT(values(at::bincount(data.test.labels)),
              ::testing::ElementsAre(103, 89, 100, 103, 90, 86, 112, 102, 106, 109));
  EXPECT_EQ(data.validation.size(), 0);
}

TEST(Embedded, MeanAndStdAreNumpys) {
  // numpy adds 5 million float64 pairwise: an error of some 1e-15; ours is exact up to the last division.
  const double mean[3] = {0.4934238465073524, 0.48418250995710804, 0.4480904710477941};
  const double std[3] = {0.2481094349936631, 0.24451781982895335, 0.2621571531621723};
  for (size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(embedded().mean[c], mean[c], 1e-13);
    EXPECT_NEAR(embedded().std[c], std[c], 1e-13);
  }
}

TEST(Embedded, ValidationShareIsHashlibs) {
  DataOptions options;
  options.validation = 0.1;
  const Dataset data = load_dataset(options);
  EXPECT_EQ(data.validation.size(), 471);
  EXPECT_EQ(data.train.size(), 4529);
  EXPECT_THAT(values(data.validation.source_index.slice(0, 0, 5)), ::testing::ElementsAre(9, 15, 29, 36, 43));
  EXPECT_EQ(data.split_hash, "2511ea8cfc49ed027caab2d03032dc4cb70152ad7acfa3c85a67bd82f68fc503");
  EXPECT_NEAR(data.mean[0], 0.4927737334549351, 1e-13);  // over what is left in train
  EXPECT_NEAR(data.std[2], 0.26183029736965197, 1e-13);
}

TEST(Embedded, HashedSubsetIsHashlibs) {
  const at::Tensor subset = hashed_subset(embedded().train, 8);
  EXPECT_THAT(values(subset), ::testing::ElementsAre(163, 439, 991, 1711, 2803, 3175, 3242, 4424));
  EXPECT_EQ(subset_hash(embedded().train, subset),
            "cb71a99217be81940c589d785125a568ac9e80647fc47acc4800db5c9fb83a8e");
  EXPECT_EQ(hashed_subset(embedded().train, 0).numel(), 5000);
  EXPECT_EQ(hashed_subset(embedded().train, 5001).numel(), 5000);
}

TEST(Embedded, NetworkInputsAreNormalisedChannelsLast) {
  const at::Tensor index = at::tensor({17, 4, 17}, at::kLong);
  const at::Tensor inputs = network_inputs(embedded(), embedded().train, index, at::kDouble, at::kCPU);
  EXPECT_TRUE(inputs.is_contiguous(at::MemoryFormat::ChannelsLast));
  const double pixel[3] = {0.55599942225405, 0.4415807112280025, 0.38499478491401734};
  for (int64_t c = 0; c < 3; ++c) EXPECT_NEAR(inputs[0][c][5][9].item<double>(), pixel[c], 1e-12);
  EXPECT_TRUE(at::equal(inputs[0], inputs[2]));
  const at::Tensor single = network_inputs(embedded(), embedded().train, index, at::kFloat, at::kCPU);
  EXPECT_EQ(single.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(single, inputs.to(at::kFloat)));
  EXPECT_EQ(
      network_inputs(embedded(), embedded().train, at::empty({0}, at::kLong), at::kFloat, at::kCPU).size(0),
      0);
}

TEST(Embedded, DamageOrAbsenceIsReported) {
  const TemporaryFolder folder;
  const std::string real = embedded_folder("cifar10-5k");
  const char* before = std::getenv("BASIN_DATA");
  const std::string kept = before ? before : "";
  ::setenv("BASIN_DATA", folder.path().c_str(), 1);
  EXPECT_THAT(data_error([] { load_dataset({}); }), HasSubstr(folder / "cifar10-5k"));
  for (const char* name : {"data_batch_1.bin", "test_batch.bin"}) {
    std::filesystem::create_directories(folder / "cifar10-5k");
    spill(folder / ("cifar10-5k/" + std::string(name)), slurp(real + "/" + name));
  }
  EXPECT_EQ(load_dataset({}).pixels, "official");
  std::string bytes = slurp(real + "/test_batch.bin");
  bytes[1234567] ^= 1;
  spill(folder / "cifar10-5k/test_batch.bin", bytes);
  EXPECT_THAT(data_error([] { load_dataset({}); }), HasSubstr("test_batch.bin: SHA-256"));
  if (before)
    ::setenv("BASIN_DATA", kept.c_str(), 1);
  else
    ::unsetenv("BASIN_DATA");
}

/// 400 random 1x2x2 images of 3 classes; every tenth is a copy of the one before, with another label half of
/// the time.
Split random_split() {
  Split split;
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(11);
  split.inputs = at::randint(0, 256, {400, 1, 2, 2}, generator, at::kLong).to(at::kByte);
  split.labels = at::arange(400, at::kLong).remainder(3);
  split.source_index = at::arange(400, at::kLong);
  for (int64_t i = 10; i < 400; i += 10) split.inputs[i].copy_(split.inputs[i - 1]);
  return split;
}

TEST(ValidationShare, SplitsWithoutOverlapByImageBytesAlone) {
  const Split split = random_split();
  const auto [inside, outside] = validation_share(split, 0.3);
  std::set<int64_t> all;
  for (const at::Tensor& part : {inside, outside})
    for (const int64_t i : values(part)) EXPECT_TRUE(all.insert(i).second);
  EXPECT_EQ(all.size(), 400u);
  EXPECT_NEAR(static_cast<double>(inside.numel()), 120,
              5 * std::sqrt(400 * 0.3 * 0.7));  // five SD of a binomial
  const std::vector<int64_t> chosen = values(inside);
  const std::set<int64_t> in_validation(chosen.begin(), chosen.end());
  for (int64_t i = 10; i < 400; i += 10) EXPECT_EQ(in_validation.count(i), in_validation.count(i - 1));
  const std::vector<int64_t> smaller = values(validation_share(split, 0.1).first);
  EXPECT_TRUE(std::includes(chosen.begin(), chosen.end(), smaller.begin(), smaller.end()));
}

TEST(ValidationShareAndSubset, DoNotDependOnTheOrderOfTheFile) {
  const Split split = random_split();
  const at::Tensor order =
      (at::arange(400, at::kLong) * 171 + 7).remainder(400);  // 171 and 400 have no common factor
  const Split shuffled = take(split, order);
  const auto originals = [](const Split& s, const at::Tensor& index) {
    std::vector<int64_t> found = values(s.source_index.index_select(0, index));
    std::sort(found.begin(), found.end());
    return found;
  };
  EXPECT_EQ(originals(split, validation_share(split, 0.25).first),
            originals(shuffled, validation_share(shuffled, 0.25).first));
  EXPECT_EQ(originals(split, hashed_subset(split, 60)), originals(shuffled, hashed_subset(shuffled, 60)));
}

TEST(HashedSubset, IsNestedAndAscending) {
  const Split split = random_split();
  const std::vector<int64_t> small = values(hashed_subset(split, 20)),
                             large = values(hashed_subset(split, 90));
  EXPECT_EQ(small.size(), 20u);
  EXPECT_EQ(large.size(), 90u);
  EXPECT_TRUE(std::is_sorted(large.begin(), large.end()));
  EXPECT_TRUE(std::includes(large.begin(), large.end(), small.begin(), small.end()));
}

TEST(Synthetic, IsTheSameEverywhereAndForEverySize) {
  DataOptions options;
  options.set = "synthetic";
  const Dataset data = load_dataset(options);
  EXPECT_EQ(data.train.size(), 512);
  EXPECT_EQ(data.test.size(), 256);
  EXPECT_EQ(data.pixels, "synthetic");
  options.train_examples = 700;
  options.test_examples = 30;
  const Dataset other = load_dataset(options);
  EXPECT_EQ(other.train.size(), 700);
  EXPECT_TRUE(at::equal(other.train.inputs.slice(0, 0, 512), data.train.inputs));
  EXPECT_TRUE(at::equal(other.test.inputs, data.test.inputs.slice(0, 0, 30)));
  EXPECT_FALSE(at::equal(data.train.inputs[0], data.test.inputs[0]));
}

TEST(Synthetic, CanBeLearnt) {
  DataOptions options;
  options.set = "synthetic";
  const Dataset data = load_dataset(options);
  const auto inputs = [&](const Split& s) {
    return network_inputs(data, s, at::arange(s.size(), at::kLong), at::kDouble, at::kCPU).flatten(1);
  };
  const at::Tensor train = inputs(data.train), test = inputs(data.test);
  at::Tensor means = at::zeros({10, 3072}, at::kDouble);
  for (int64_t c = 0; c < 10; ++c) means[c].copy_(train.index({data.train.labels == c}).mean(0));
  const at::Tensor nearest = at::cdist(test, means).argmin(1);
  EXPECT_GT(nearest.eq(data.test.labels).to(at::kDouble).mean().item<double>(), 0.95);  // guessing gives 0.1
}

TEST(CoinFlips, AreFairNormalisedAndTheSameForEverySize) {
  DataOptions options;
  options.set = "coin_flips";
  const Dataset data = load_dataset(options);
  const int64_t n = 8192, coins = 256;
  EXPECT_EQ(data.train.inputs.sizes(), (std::vector<int64_t>{n, coins, 1, 1}));
  EXPECT_EQ(data.classes(), coins);
  EXPECT_EQ(data.test.size(), 256);
  EXPECT_EQ(data.pixels, "synthetic");
  EXPECT_TRUE(at::equal(data.train.labels, at::zeros({n}, at::kLong)));
  const at::Tensor images = data.train.inputs;
  EXPECT_TRUE(images.eq(0).logical_or(images.eq(255)).all().item<bool>());
  const at::Tensor inputs =
      network_inputs(data, data.train, at::arange(n, at::kLong), at::kDouble, at::kCPU).flatten(1);
  EXPECT_LT(inputs.mean(0).abs().max().item<double>(), 1e-12);  // rounding of sums of 8,192
  EXPECT_LT((inputs.square().mean(0) - 1).abs().max().item<double>(), 1e-12);
  // The share of heads has standard deviation 1/2 / sqrt(n), the correlation of two coins 1/sqrt(n); 4.5
  // and 5.5 of them are passed once in a thousand data sets among so many.
  const double deviation = 1 / std::sqrt(static_cast<double>(n));
  EXPECT_LT((images.to(at::kDouble) / 255 - 0.5).mean(0).abs().max().item<double>(), 4.5 * deviation / 2);
  const at::Tensor correlation =
      inputs.t().matmul(inputs) / static_cast<double>(n) - at::eye(coins, at::kDouble);
  EXPECT_LT(correlation.abs().max().item<double>(), 5.5 * deviation);

  options.train_examples = 300;
  const Dataset smaller = load_dataset(options);
  EXPECT_TRUE(at::equal(smaller.train.inputs, images.slice(0, 0, 300)));
  EXPECT_FALSE(at::equal(data.test.inputs[0], images[0]));
}

TEST(LoadDataset, RefusesOptionsThatDoNotFit) {
  const auto message = [](const std::function<void(DataOptions&)>& change) {
    DataOptions options;
    options.set = "synthetic";
    change(options);
    try {
      load_dataset(options);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("(nothing was thrown)");
  };
  EXPECT_THAT(message([](auto& o) { o.set = "imagenet"; }),
              HasSubstr("unknown data set \"imagenet\"; known: cifar10"));
  EXPECT_THAT(message([](auto& o) { o.set = "cifar10"; }), HasSubstr("data.path"));
  EXPECT_THAT(message([](auto& o) { o.path = "/somewhere"; }), HasSubstr("/somewhere"));
  EXPECT_THAT(message([](auto& o) { o.validation = 1e-9; }), HasSubstr("data.validation"));
  EXPECT_THAT(message([](auto& o) {
                o.set = "cifar10-5k";
                o.train_examples = 5001;
              }),
              HasSubstr("data.train_examples = 5001, but cifar10-5k has only 5000"));
}

TEST(LoadDataset, TakesTheFirstExamplesByHash) {
  DataOptions options;
  options.train_examples = 8;
  options.test_examples = 10;
  const Dataset data = load_dataset(options);
  EXPECT_THAT(values(data.train.source_index),
              ::testing::ElementsAre(163, 439, 991, 1711, 2803, 3175, 3242, 4424));
  EXPECT_EQ(data.test.size(), 10);
}

// What anybody can read, without files of their own.
TEST(LoadDataset, EverySetThatIsAtHandIsWholeAndReadsTheSameTwice) {
  for (const DatasetEntry& entry : dataset_registry()) {
    if (entry.needs_path) continue;
    SCOPED_TRACE(entry.name);
    DataOptions options;
    options.set = entry.name;
    options.train_examples = 40;
    options.test_examples = 20;
    const Dataset data = load_dataset(options), again = load_dataset(options);
    EXPECT_EQ(data.name, entry.name);
    EXPECT_EQ(data.train.size(), 40);
    EXPECT_EQ(data.test.size(), 20);
    EXPECT_FALSE(data.pixels.empty());
    for (const Split* split : {&data.train, &data.test}) {
      const bool is_text = entry.manifest && entry.manifest->is_text();
      EXPECT_EQ(split->inputs.scalar_type(), is_text ? at::kLong : at::kByte);
      EXPECT_EQ(split->inputs.size(0), split->size());
      EXPECT_TRUE(((split->labels >= 0) & (split->labels < data.classes())).all().item<bool>());
    }
    EXPECT_EQ(data.sha256, again.sha256);
    EXPECT_EQ(data.split_hash, again.split_hash);
    EXPECT_TRUE(at::equal(data.train.inputs, again.train.inputs));
  }
}

TEST(DataOptionsTable, ChecksItsValues) {
  DataOptions options;
  OptionTable table;
  table.group("data", [&](OptionTable& t) { bind_options(t, options); });
  EXPECT_THROW(table.set("data.validation", 1.0, "here"), ConfigError);
  EXPECT_THROW(table.set("data.set", std::string("imagenet"), "here"), ConfigError);
  EXPECT_THROW(table.set("data.augmentation", std::string("cutout"), "here"), ConfigError);
  EXPECT_THROW(table.set("data.train_examples", int64_t{-1}, "here"), ConfigError);
  EXPECT_THROW(table.set("data.padding", int64_t{-1}, "here"), ConfigError);
  table.set("data.set", std::string("synthetic"), "here");
  EXPECT_EQ(options.set, "synthetic");
}

}  // namespace
}  // namespace basin::testing
