// What several sweeps claimed, as one: against cases written out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "sweep/collect/merge_registration.h"

namespace basin {
namespace {

using ::testing::HasSubstr;

RegisteredClaim claim(const std::string& name, const std::string& utc, bool runs_before = false,
                      const std::string& hash = "h1") {
  return {{"hypothesis", name, hash, runs_before}, utc, runs_before};
}

RegisteredSource source(const std::string& folder, std::vector<RegisteredClaim> claims, bool began = true) {
  return {folder, {"", std::move(claims)}, began};
}

TEST(MergedRegistration, IsRegisteredWhenTheLastSourceDid) {
  const Registration merged = merged_registration({source("A", {claim("h", "2026-01-02T00:00:00Z")}),
                                                   source("B", {claim("h", "2026-01-03T00:00:00Z")}),
                                                   source("C", {claim("h", "2026-01-01T00:00:00Z")})});
  ASSERT_EQ(merged.claims.size(), 1u);
  EXPECT_EQ(merged.claims[0].utc, "2026-01-03T00:00:00Z");
  EXPECT_FALSE(merged.claims[0].runs_before);
  EXPECT_EQ(merged.hash, registered_hash({claim("h", "").claim}));
}

TEST(MergedRegistration, RunsHadBegunWhereTheyHadInAnySource) {
  const Registration merged = merged_registration(
      {source("A", {claim("h", "2026-01-02T00:00:00Z"), claim("g", "", false, "h2")}),
       source("B", {claim("h", "2026-01-01T00:00:00Z", true), claim("g", "", false, "h2")})});
  ASSERT_EQ(merged.claims.size(), 2u);
  EXPECT_TRUE(merged.claims[0].runs_before);
  EXPECT_TRUE(merged.claims[0].claim.exploratory);
  EXPECT_FALSE(merged.claims[1].runs_before);
  EXPECT_EQ(merged.hash, registered_hash({claim("g", "", false, "h2").claim})) << "h is registered no more";
}

TEST(MergedRegistration, ASourceWithoutTheQuestionHadRunsBeforeIt) {
  const RegisteredSource asked = source("A", {claim("h", "2026-01-02T00:00:00Z")});
  EXPECT_TRUE(merged_registration({asked, source("B", {})}).claims.at(0).runs_before);
  EXPECT_TRUE(merged_registration({source("B", {}), asked}).claims.at(0).runs_before);
  EXPECT_FALSE(merged_registration({asked, source("B", {}, /*began=*/false)}).claims.at(0).runs_before);
}

TEST(MergedRegistration, AQuestionOfOneNameIsOneQuestion) {
  try {
    merged_registration({source("A", {claim("h", "")}), source("B", {claim("h", "", false, "h2")})});
    FAIL() << "not refused";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("hypothesis \"h\" is one question in A and another in B: not merged"));
  }
}

TEST(MergedRegistration, OfNothingIsNothing) {
  EXPECT_TRUE(merged_registration({source("A", {}), source("B", {})}).claims.empty());
}

}  // namespace
}  // namespace basin
