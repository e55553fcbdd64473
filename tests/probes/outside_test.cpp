// Every probe on a problem that another process answers: the numbers that it finds in this one, or `unavailable`.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hessian/outside/outside_problem.h"
#include "tests/hessian/outside/scripted_partner.h"
#include "tests/probes/probe_fixture.h"
#include "tests/support/tiny_models.h"

namespace basin {
namespace {

using testing::run_probe;

struct Network {
  testing::TinyBatch batch = testing::tiny_batch(testing::tiny_shape(), 40);
  Objective objective{testing::tiny_mlp(1, at::kDouble, "relu"), LossKind::cross_entropy, batch.images,
                      batch.labels, 16};
};

class OutsideProbe : public ::testing::TestWithParam<std::string> {
 protected:
  std::vector<Answer> needs(const std::vector<std::string>& settings = {}) const {
    const ProbeEntry& entry = find_entry(probe_registry(), GetParam(), "probe");
    return entry.make(*testing::options_with(entry, settings))->needs();
  }
  ProbeResult run(const std::set<std::string>& leaves_out, const std::vector<std::string>& settings = {}) {
    Network there;
    testing::ScriptedPartner other(there.objective, {.leaves_out = leaves_out});
    OutsideProblem problem(other.connect());
    const at::Tensor before = problem.parameters().gather();
    const ProbeResult result = run_probe(GetParam(), problem, settings);
    EXPECT_TRUE(at::equal(problem.parameters().gather(), before)) << "weights that weren't put back";
    return result;
  }
};

bool can_be_outside(Answer answer) { return answer != Answer::logits && answer != Answer::layers; }

TEST_P(OutsideProbe, FindsTheSameNumbersAsInThisProcess) {
  const std::vector<Answer> needed = needs();
  const ProbeResult result = run({});
  if (!std::all_of(needed.begin(), needed.end(), can_be_outside)) {
    EXPECT_EQ(result.status, ProbeStatus::unavailable);
    EXPECT_TRUE(result.quantities.empty());
    EXPECT_THAT(result.message, ::testing::HasSubstr("which this problem doesn't answer"));
    return;
  }
  Network here;
  const ProbeResult expected = run_probe(GetParam(), here.objective);
  ASSERT_EQ(result.quantities.size(), expected.quantities.size()) << result.message;
  int64_t compared = 0;
  for (size_t i = 0; i < expected.quantities.size(); ++i) {
    const Quantity &ours = expected.quantities[i], &theirs = result.quantities[i];
    EXPECT_EQ(theirs.name, ours.name);
    if (theirs.status == ProbeStatus::unavailable) {
      EXPECT_TRUE(std::isnan(theirs.value.at(0))) << theirs.name;
      EXPECT_EQ(result.status, ProbeStatus::unavailable);
      continue;
    }
    EXPECT_EQ(theirs.units, ours.units) << theirs.name;
    EXPECT_EQ(theirs.status, ours.status) << theirs.name;
    for (size_t k = 0; k < ours.value.size(); ++k) {
      if (std::isnan(ours.value[k])) continue;
      // Single gradients are sums of the same terms in another order.
      EXPECT_NEAR(theirs.value[k], ours.value[k], 1e-9 * std::abs(ours.value[k])) << theirs.name;
      ++compared;
    }
  }
  EXPECT_GT(compared, 0);
}

// What it says that it needs is all that it asks for.
TEST_P(OutsideProbe, AsksForNothingElse) {
  const ProbeEntry& entry = find_entry(probe_registry(), GetParam(), "probe");
  std::vector<std::vector<std::string>> settings{{}, entry.audit.cheap};
  for (const ProbeAudit::Variant& variant : entry.audit.variants) settings.push_back(variant.settings);
  for (const std::vector<std::string>& chosen : settings) {
    const std::vector<Answer> needed = needs(chosen);
    if (!std::all_of(needed.begin(), needed.end(), can_be_outside)) continue;
    std::set<std::string> others;
    for (const Answer answer : all_answers())
      if (std::find(needed.begin(), needed.end(), answer) == needed.end()) others.insert(to_string(answer));
    if (needed.empty()) others.erase("loss");  // a hello answers something
    EXPECT_NO_THROW(run(others, chosen)) << fmt::format("{}", fmt::join(chosen, ", "));
  }
}

TEST_P(OutsideProbe, SaysWhichAnswerIsMissing) {
  for (const Answer answer : needs()) {
    if (!can_be_outside(answer)) continue;
    const ProbeResult result = run({to_string(answer)});
    EXPECT_EQ(result.status, ProbeStatus::unavailable);
    EXPECT_THAT(result.message, ::testing::HasSubstr(fmt::format("({})", to_string(answer))));
    EXPECT_TRUE(result.quantities.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(All, OutsideProbe, ::testing::ValuesIn(names_of(probe_registry())),
                         [](const auto& info) { return info.param; });

TEST(OutsideProbes, AMatrixOtherThanTheHessianNeedsLogits) {
  Network there;
  testing::ScriptedPartner other(there.objective);
  OutsideProblem problem(other.connect());
  const ProbeResult result = run_probe("curvature", problem, {"matrix=gauss_newton"});
  EXPECT_EQ(result.status, ProbeStatus::unavailable);
  EXPECT_EQ(result.message, "needs the network's logits (logits), which this problem doesn't answer");
}

}  // namespace
}  // namespace basin
