// Which rank a process is, by what launchers say.
#include "ranks/place.h"

#include <gtest/gtest.h>

#include <map>

#include "core/error.h"
#include "tests/support/environment.h"
#include "tests/support/message_of.h"

namespace basin {
namespace {

/// The environment of one launcher and of no other.
class LaunchedBy {
 public:
  explicit LaunchedBy(const std::map<std::string, std::string>& variables) : variables_(all(variables)) {}

 private:
  static std::map<std::string, std::optional<std::string>> all(
      const std::map<std::string, std::string>& set) {
    std::map<std::string, std::optional<std::string>> all(set.begin(), set.end());
    for (const char* name : {"RANK",
                             "WORLD_SIZE",
                             "LOCAL_RANK",
                             "LOCAL_WORLD_SIZE",
                             "OMPI_COMM_WORLD_RANK",
                             "OMPI_COMM_WORLD_SIZE",
                             "OMPI_COMM_WORLD_LOCAL_RANK",
                             "OMPI_COMM_WORLD_LOCAL_SIZE",
                             "PMI_RANK",
                             "PMI_SIZE",
                             "MPI_LOCALRANKID",
                             "MPI_LOCALNRANKS",
                             "SLURM_PROCID",
                             "SLURM_NTASKS",
                             "SLURM_LOCALID",
                             "SLURM_STEP_ID",
                             "SLURM_JOB_ID",
                             "SLURM_STEP_NODELIST",
                             "MASTER_ADDR",
                             "MASTER_PORT"})
      all.try_emplace(name, std::nullopt);
    return all;
  }
  testing::Variables variables_;
};

std::string refusal_of(const std::map<std::string, std::string>& variables) {
  const LaunchedBy launched(variables);
  return testing::message_of<ConfigError>([] { place_of_environment(); });
}

TEST(RankPlace, NothingWithoutALauncher) {
  const LaunchedBy launched({});
  EXPECT_FALSE(place_of_environment());
}

TEST(RankPlace, Torchrun) {
  const LaunchedBy launched({{"RANK", "3"},
                             {"WORLD_SIZE", "4"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "2"},
                             {"MASTER_ADDR", "node7"},
                             {"MASTER_PORT", "1234"}});
  const std::optional<RankPlace> place = place_of_environment();
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 3);
  EXPECT_EQ(place->size, 4);
  EXPECT_EQ(place->local_rank, 1);
  EXPECT_EQ(place->local_size, 2);
  EXPECT_EQ(place->host, "node7");
  EXPECT_EQ(place->port, 1234);
}

TEST(RankPlace, OneProcessIsNoRank) {
  const LaunchedBy launched({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  EXPECT_FALSE(place_of_environment());
}

TEST(RankPlace, SrunMeetsAtTheStepsFirstHost) {
  const LaunchedBy launched({{"SLURM_PROCID", "2"},
                             {"SLURM_NTASKS", "4"},
                             {"SLURM_LOCALID", "0"},
                             {"SLURM_STEP_ID", "1"},
                             {"SLURM_JOB_ID", "4711"},
                             {"SLURM_STEP_NODELIST", "gpu[003-007,9]"}});
  const std::optional<RankPlace> place = place_of_environment();
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 2);
  EXPECT_EQ(place->host, "gpu003");
  EXPECT_EQ(place->port, 20000 + (4711 * 7 + 1) % 20000);
}

// Slurm sets the same variables in the script that sbatch runs, which is one process whatever --ntasks is.
TEST(RankPlace, ABatchScriptIsNoTaskOfAStep) {
  const LaunchedBy launched({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "4711"}});
  EXPECT_FALSE(place_of_environment());
}

TEST(RankPlace, Mpirun) {
  const LaunchedBy launched({{"OMPI_COMM_WORLD_RANK", "1"},
                             {"OMPI_COMM_WORLD_SIZE", "2"},
                             {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                             {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  const std::optional<RankPlace> place = place_of_environment();
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 1);
  EXPECT_EQ(place->host, "127.0.0.1");
}

TEST(RankPlace, WhatMakesNoSenseIsNamed) {
  EXPECT_EQ(refusal_of({{"RANK", "0"}, {"WORLD_SIZE", "0"}}),
            "WORLD_SIZE = \"0\" is no whole number of at least 1");
  EXPECT_EQ(refusal_of({{"RANK", "x"}, {"WORLD_SIZE", "2"}}),
            "RANK = \"x\" is no whole number of at least 0");
  EXPECT_EQ(refusal_of({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
            "RANK = 2, but WORLD_SIZE = 2: ranks count from 0");
  EXPECT_EQ(refusal_of({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}),
            "2 processes and no place to meet: set MASTER_ADDR to rank 0's host");
}

TEST(RankPlace, FirstHostOfASlurmList) {
  for (const auto& [list, first] : std::map<std::string, std::string>{{"vm", "vm"},
                                                                      {"n1,n2", "n1"},
                                                                      {"gpu[003-007,9],x1", "gpu003"},
                                                                      {"a-[1,3]-b,c", "a-1-b"},
                                                                      {"x1,gpu[1-2]", "x1"}})
    EXPECT_EQ(first_host(list), first);
}

}  // namespace
}  // namespace basin
