// Given trust ratios from the record of another run: their means, into the options and the name of the run.
#include "study/trust_ratios.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "io/run_file.h"
#include "study/study.h"
#include "tests/study/study_text.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace basin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace testing;

/// A run with three rows of /layers and three parameters, of which the second has no ratio.
void write_run(const std::string& path, bool with_ratios) {
  RunRecord record;
  record.header.run_id = "aaaaaaaaaaaa";
  record.status = RunState::finished;
  Table layers;
  layers.name = "layers";
  const std::vector<std::string> names{"conv1.weight", "conv1.bias", "fc.weight"};
  layers.columns = {{"update", "1", "updates done", "from 1", 1, {}},
                    {"weight_norm", "weight", "weight norm", "Euclidean", 3, names},
                    {"trust_ratio", "1", "trust ratio", "of a tensor", 3, names}};
  const double none = NAN;
  for (const auto& [update, conv, fc] : {std::tuple{1.0, 0.25, 3.0}, {5.0, 0.5, 1.0}, {9.0, 0.75, 0.5}}) {
    const std::vector<double> row{update, 9, 9, 9, with_ratios ? conv : none, none, with_ratios ? fc : none};
    layers.rows.insert(layers.rows.end(), row.begin(), row.end());
  }
  record.tables["layers"] = layers;
  write_run_file(path, record);
}

std::string study_text(const std::string& more) {
  return "optimizer = \"lamb\"\n[data]\nset = \"synthetic\"\n[lamb]\n" + more;
}

TEST(TrustRatios, AreMeansOfARunsRows) {
  const TemporaryFolder folder;
  write_run(folder / "run.h5", true);
  for (const std::string& run : {folder.path(), folder / "run.h5"})
    EXPECT_THAT(mean_trust_ratios(run), ElementsAre("conv1.weight=0.5", "fc.weight=1.5"));
}

TEST(TrustRatios, AreTheRunsOwnOptionsAndPartOfItsName) {
  const TemporaryFolder folder;
  write_run(folder / "run.h5", true);
  const std::string from = "trust_from = \"" + folder.path() + "\"\n";
  const Cell cell = expand(study_of(study_text("trust = \"frozen\"\n" + from))).at(0);
  const std::string given = "trust_ratios = [\"conv1.weight=0.5\", \"fc.weight=1.5\"]\n";
  EXPECT_EQ(cell.run_id, expand(study_of(study_text("trust = \"frozen\"\n" + given))).at(0).run_id);
  EXPECT_NE(cell.run_id, expand(study_of(study_text("trust = \"frozen_mean\"\n" + from))).at(0).run_id);
  EXPECT_THAT(cell.options.resolved(), HasSubstr("conv1.weight=0.5"));
  // What is given is not read again, and the live arms read nothing.
  std::filesystem::remove(folder / "run.h5");
  EXPECT_EQ(expand(study_of(study_text("trust = \"frozen\"\n" + given + from))).at(0).run_id, cell.run_id);
  EXPECT_EQ(expand(study_of(study_text(from))).at(0).run_id, expand(study_of(study_text(""))).at(0).run_id);
}

TEST(TrustRatios, AreRefusedWhereThereAreNone) {
  const TemporaryFolder folder;
  write_run(folder / "run.h5", false);
  EXPECT_THAT(message_of([&] { mean_trust_ratios(folder.path()); }), HasSubstr("no trust ratios"));
  EXPECT_THROW(mean_trust_ratios(folder / "missing"), IoError);
}

}  // namespace
}  // namespace basin
