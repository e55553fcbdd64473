#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/files.h"
#include "core/seed.h"
#include "tests/probes/probe_fixture.h"
#include "tests/support/environment.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

using testing::run_probe;

class ProbeContract : public ::testing::TestWithParam<std::string> {
 protected:
  testing::TinyBatch batch = testing::tiny_batch(testing::tiny_shape(), 40, 1, at::kFloat);
  std::shared_ptr<Model> model = testing::tiny_mlp(1, at::kFloat, "relu");
  at::Tensor labels = model->forward(batch.images).argmax(1);  // pac_bayes asks for accuracy to lose
  Objective objective{model, LossKind::cross_entropy, batch.images, labels, 16};
};

// A number that isn't there is NaN with a status; NaN is equal to itself here.
std::vector<std::string> printed(const ProbeResult& result) {
  std::vector<std::string> lines{to_string(result.status)};
  for (const Quantity& q : result.quantities) {
    lines.push_back(fmt::format("{} {} {} {} {} {}", q.name, to_string(q.status), q.value, q.uncertainty,
                                q.ci_low, q.ci_high));
  }
  return lines;
}

TEST_P(ProbeContract, EveryNumberHasUnitsDefinitionUncertaintyAndStatus) {
  const ProbeResult result = run_probe(GetParam(), objective);
  EXPECT_EQ(result.probe, GetParam());
  EXPECT_FALSE(result.quantities.empty());
  EXPECT_GT(result.seconds, 0);
  EXPECT_EQ(result.status == ProbeStatus::ok, result.message.empty());
  const std::string docs = read_file(testing::source_folder() + "/docs/probes.md");
  std::set<std::string> names;
  for (const Quantity& q : result.quantities) {
    EXPECT_TRUE(names.insert(q.name).second) << q.name;
    EXPECT_FALSE(q.units.empty() || q.long_name.empty()) << q.name;
    EXPECT_NE(q.status, ProbeStatus::failed) << q.name << ": a probe fails, a number doesn't";
    EXPECT_TRUE(q.entry_status.empty() || q.entry_status.size() == q.value.size()) << q.name;
    EXPECT_TRUE(q.is_vector || q.value.size() == 1) << q.name;
    EXPECT_EQ(q.value.size(), q.uncertainty.size()) << q.name;
    EXPECT_EQ(q.ci_low.size(), q.ci_high.size()) << q.name;
    EXPECT_TRUE(q.ci_low.empty() || q.ci_low.size() == q.value.size()) << q.name;
    for (const double value : q.value)
      EXPECT_TRUE(std::isfinite(value) || q.status != ProbeStatus::ok) << q.name;
    EXPECT_THAT(docs, ::testing::HasSubstr("\n### " + q.definition + "\n")) << "docs/probes.md";
  }
  std::set<std::string> keys;
  for (const auto& [key, value] : result.attributes) EXPECT_TRUE(keys.insert(key).second) << key << " twice";
  for (const char* key :
       {"n_examples", "subset_hash", "seed", "dtype", "bn_mode", "micro_batch", "weight_norm"}) {
    EXPECT_TRUE(keys.count(key)) << key;
  }
}

// With its own settings and those of an audit.
TEST_P(ProbeContract, FindsWhatItsEntrySays) {
  const ProbeEntry& entry = find_entry(probe_registry(), GetParam(), "probe");
  std::set<std::string> found, names;
  const auto measure = [&](const std::vector<std::string>& settings) {
    for (const Quantity& q : run_probe(GetParam(), objective, settings).quantities) {
      found.insert(q.definition);
      names.insert(q.name);
      for (size_t i = 0; i < q.value.size(); ++i) {
        const std::string number = entry_name(q.name, q.is_vector, i);
        EXPECT_TRUE(has_entry(entry, number)) << number << " is in no line of ProbeEntry::entries";
      }
    }
  };
  measure({});
  measure(entry.audit.cheap);
  for (const ProbeAudit::Variant& variant : entry.audit.variants) {
    std::vector<std::string> settings = entry.audit.cheap;
    settings.insert(settings.end(), variant.settings.begin(), variant.settings.end());
    measure(settings);
  }
  EXPECT_THAT(found, ::testing::IsSubsetOf(entry.definitions));  // some come with other settings alone
  for (const ProbeHeadline& headline : entry.headlines) {
    EXPECT_TRUE(names.count(headline.quantity)) << headline.quantity;
    EXPECT_FALSE(headline.label.empty()) << headline.quantity;
  }
  for (const ProbeRatio& ratio : entry.ratios)
    for (const std::string& name : {ratio.quantity, ratio.numerator, ratio.denominator})
      EXPECT_TRUE(names.count(name)) << name;
  for (const std::string& name : entry.copies)
    EXPECT_TRUE(names.count(name) || names.count(name + "_finite")) << name;
}

// Where nothing is drawn another seed changes nothing.
TEST_P(ProbeContract, SameSeedSameNumbersAnotherSeedAnotherDraw) {
  const auto first = printed(run_probe(GetParam(), objective, {}, 3));
  EXPECT_EQ(first, printed(run_probe(GetParam(), objective, {}, 3)));
  EXPECT_EQ(first == printed(run_probe(GetParam(), objective, {}, 4)),
            !find_entry(probe_registry(), GetParam(), "probe").draws);
}

TEST_P(ProbeContract, LeavesTheModelBitIdentical) {
  const auto bn = testing::tiny_model("resnet20", {"norm=batch"}, 1, at::kFloat);
  const auto images = testing::tiny_batch(testing::tiny_image_shape(), 20, 1, at::kFloat);
  Objective on_bn(bn, LossKind::cross_entropy, images.images, images.labels, 8, /*graph_memory=*/1 << 30);
  const at::Tensor before = on_bn.parameters().gather();
  std::vector<at::Tensor> buffers;
  for (const auto& [name, tensor] : bn->buffer_table()) buffers.push_back(tensor.clone());
  const ProbeResult result = run_probe(GetParam(), on_bn);
  EXPECT_TRUE(at::equal(on_bn.parameters().gather(), before));
  for (size_t i = 0; i < buffers.size(); ++i)
    EXPECT_TRUE(at::equal(bn->buffer_table()[i].second, buffers[i]));
  EXPECT_EQ(testing::attribute<std::string>(result, "bn_mode"), "running");
}

TEST_P(ProbeContract, ANetworkThatIsNotANumberIsAStatus) {
  const at::Tensor w = objective.parameters().gather();
  w[5] = std::numeric_limits<float>::quiet_NaN();
  objective.parameters().scatter(w);
  const ProbeResult result = run_probe(GetParam(), objective);
  EXPECT_EQ(result.status, ProbeStatus::nonfinite);
  EXPECT_FALSE(result.message.empty());
  for (const Quantity& q : result.quantities) {
    EXPECT_EQ(q.status, ProbeStatus::nonfinite) << q.name;
    for (const double value : q.value) EXPECT_TRUE(std::isnan(value)) << q.name;
  }
}

// Numbers, or one line that says why there are none.
void expect_numbers_or_a_reason(const ProbeResult& result) {
  EXPECT_TRUE(result.status == ProbeStatus::ok || result.status == ProbeStatus::not_resolved ||
              result.status == ProbeStatus::unavailable)
      << to_string(result.status) << ' ' << result.message;
  EXPECT_EQ(result.status == ProbeStatus::ok, result.message.empty()) << result.message;
  for (const Quantity& q : result.quantities)
    for (const double value : q.value)
      EXPECT_TRUE(std::isfinite(value) || q.status != ProbeStatus::ok) << q.name;
}

TEST_P(ProbeContract, RunsOnTokens) {
  const auto batch = testing::tiny_batch(testing::tiny_input_shape("gpt"), 30);
  const auto gpt = testing::tiny_model("gpt");
  Objective on_tokens(gpt, LossKind::token_cross_entropy, batch.images, gpt->forward(batch.images).argmax(-1),
                      8);
  expect_numbers_or_a_reason(run_probe(GetParam(), on_tokens));
}

TEST_P(ProbeContract, RunsOnNumbersToPredict) {
  const at::Tensor numbers = at::randn({40, 3}, make_generator(7), at::kFloat);
  Objective on_numbers(model, LossKind::mse, batch.images, numbers, 16);
  expect_numbers_or_a_reason(run_probe(GetParam(), on_numbers));
}

INSTANTIATE_TEST_SUITE_P(All, ProbeContract, ::testing::ValuesIn(names_of(probe_registry())),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace basin
