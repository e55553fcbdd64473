// Which failures an audit names: what failed on a transformed network alone is no number that couldn't be told apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runs/audit/audit.h"

namespace basin {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

ProbeResult failed(const std::string& message) {
  ProbeResult result;
  result.status = ProbeStatus::failed;
  result.message = message;
  return result;
}

TEST(AuditFailures, AreNamedWhereverTheyAre) {
  const AuditVariant variant{"noise_scale", "", nullptr};
  std::vector<AuditTrial> trials(2);
  trials[0].transformation = "relu_rescale";
  trials[1].transformation = "norm_scale";
  const auto found = [&](std::vector<ProbeResult> originals, std::vector<ProbeResult> transformed) {
    std::vector<Measured> all;
    all.push_back({variant, std::move(originals), std::move(transformed)});
    return failures_of(all, trials);
  };
  const ProbeResult good;
  EXPECT_THAT(found({good, good}, {good, good}), IsEmpty());
  EXPECT_THAT(found({good, good}, {good, failed("no memory")}),
              ElementsAre(Pair("noise_scale", "on a transformed network (norm_scale): no memory")));
  EXPECT_THAT(found({good, failed("no layers")}, {failed("no layers"), failed("no layers")}),
              ElementsAre(Pair("noise_scale", "no layers")));
}

}  // namespace
}  // namespace basin
