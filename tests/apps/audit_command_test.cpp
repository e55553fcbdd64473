// `basin audit` seen from outside: which measures move, what is written, refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/files.h"
#include "io/schema.h"
#include "tests/apps/tiny_study.h"

namespace basin::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class AuditCommand : public ::testing::Test {
 protected:
  void train(const std::vector<std::string>& lines = {}, const std::vector<std::string>& tables = {}) {
    study_ = std::make_unique<TinyStudy>(lines, tables);
    const BinaryResult result = study_->train();
    ASSERT_EQ(result.exit_code, 0) << result.err;
    folder_ = study_->run_folder();
  }
  BinaryResult audit(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"audit", folder_ + "/ckpt/end.h5", "--subset", "60",
                                          "--set", "runtime.threads=1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_binary(arguments);
  }
  std::string path() const { return folder_ + "/audit/end.h5"; }

  struct Row {
    std::string verdict;
    double before, after, error_before, error_after;
    double distance() const { return std::abs(after - before); }
    /// The error of the difference, by the numbers' own errors.
    double error() const { return 2 * std::hypot(error_before, error_after); }
  };
  /// The rows of a definition under a transformation.
  std::vector<Row> rows(const std::string& definition, const std::string& transformation,
                        const std::string& settings = "") const {
    const h5::File file = open_schema_file(path(), kAuditSchema);
    const h5::Group table = file.group("audit");
    const auto texts = [&](const char* name) { return table.dataset(name).read_texts(); };
    const auto numbers = [&](const char* name) { return table.dataset(name).read<double>(); };
    const auto definitions = texts("definition"), transformations = texts("transformation"),
               all_settings = texts("settings"), verdict = texts("verdict");
    const auto before = numbers("before"), after = numbers("after"),
               error_before = numbers("uncertainty_before"), error_after = numbers("uncertainty_after");
    std::vector<Row> found;
    for (size_t i = 0; i < verdict.size(); ++i)
      if (definitions[i] == definition && transformations[i] == transformation && all_settings[i] == settings)
        found.push_back({verdict[i], before[i], after[i], error_before[i], error_after[i]});
    return found;
  }
  std::set<std::string> verdicts(const std::string& definition, const std::string& transformation,
                                 const std::string& settings = "") const {
    std::set<std::string> found;
    for (const Row& row : rows(definition, transformation, settings)) found.insert(row.verdict);
    return found;
  }
  using Set = std::set<std::string>;

  std::unique_ptr<TinyStudy> study_;
  std::string folder_;
};

TEST_F(AuditCommand, TellsMeasuresOfTheFunctionFromMeasuresOfTheWeights) {
  train();
  const std::string checkpoint = folder_ + "/ckpt/end.h5", before = read_file(checkpoint);
  const BinaryResult result = audit({"--only", "top_eigenvalues,sharpness_sam,noise_scale"});
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  EXPECT_EQ(read_file(checkpoint), before);

  // Over groups of examples, other than over all, a measure may be unresolved: there are two groups.
  const auto moves = [&](const std::string& definition, const std::string& transformation,
                         const std::string& settings = "") {
    return verdicts(definition, transformation, settings).count("moved") == 1;
  };
  const std::string exact = "eta=0, scaled=all";
  for (const char* rescaling : {"relu_rescale", "relu_rescale_all", "relu_rescale_units"}) {
    EXPECT_EQ(verdicts("hessian-lambda", rescaling), Set{"moved"}) << rescaling;
    EXPECT_EQ(verdicts("sam-ascended", rescaling), Set{"moved"}) << rescaling;
    EXPECT_TRUE(moves("asam-ascended", rescaling)) << rescaling << ": eta, and biases without a scale";
    EXPECT_TRUE(moves("asam-ascended", rescaling, "eta=0")) << rescaling << ": biases without a scale";
    EXPECT_TRUE(moves("asam-all-ascended", rescaling)) << rescaling << ": eta is no share of a weight";
    EXPECT_EQ(verdicts("asam-all-ascended", rescaling, exact), Set{"invariant"}) << rescaling;
    EXPECT_EQ(verdicts("asam-all-first-order", rescaling, exact), Set{"invariant"}) << rescaling;
    EXPECT_TRUE(moves("noise-scale-finite", rescaling)) << rescaling;
  }
  for (const char* definition : {"hessian-lambda", "sam-ascended", "asam-ascended", "noise-scale-finite"})
    EXPECT_EQ(verdicts(definition, "unit_permutation"), Set{"invariant"}) << definition;
  EXPECT_EQ(verdicts("hessian-lambda", "logit_scale"), Set{"moved"});
  EXPECT_TRUE(moves("asam-all-ascended", "logit_scale", exact));
  EXPECT_EQ(verdicts("hessian-lambda", "norm_scale"), Set{}) << "there is no norm";

  EXPECT_THAT(result.out, HasSubstr("changed although the function didn't: asam-all-ascended, "));
  EXPECT_THAT(result.out, HasSubstr("unchanged like the function: asam-all-ascended (" + exact + "), "));
}

TEST_F(AuditCommand, WritesARowANumberAndTransformationAndSaysOnWhat) {
  train();
  ASSERT_EQ(audit({"--only", "top_eigenvalues", "--set", "top_eigenvalues.count=2"}).exit_code, 0);
  const h5::File file = open_schema_file(path(), kAuditSchema);
  const h5::Group table = file.group("audit");
  // lambda_1, lambda_2, lambda_min, lambda_1 |w|^2 under five transformations of a network with one hidden
  // layer: one layer by 2 and by 10, all, by unit, permuted, and louder.
  constexpr int64_t kRows = 4 * 6;
  for (const std::string& name : table.dataset_names())
    EXPECT_EQ(table.dataset(name).shape(), std::vector<int64_t>{kRows}) << name;
  EXPECT_THAT(table.dataset_names(),
              ::testing::UnorderedElementsAre("probe", "settings", "quantity", "definition", "transformation",
                                              "strength", "kind", "before", "after", "uncertainty_before",
                                              "uncertainty_after", "ratio", "verdict"));
  EXPECT_EQ(table.dataset("quantity").read_texts().at(6), "lambda_2");
  const auto kinds = table.dataset("kind").read_texts(), names = table.dataset("transformation").read_texts();
  const auto before = table.dataset("before").read<double>(), after = table.dataset("after").read<double>(),
             ratio = table.dataset("ratio").read<double>();
  for (size_t i = 0; i < kRows; ++i) {
    EXPECT_EQ(kinds[i], names[i] == "logit_scale" ? "decisions" : "function");
    EXPECT_EQ(ratio[i], after[i] / before[i]);
  }
  EXPECT_EQ(file.attribute_as<int64_t>("n_examples"), 60);
  EXPECT_EQ(file.attribute_as<std::string>("dtype"), "float64");
  EXPECT_EQ(file.attribute_as<std::string>("checkpoint"), "end");
  for (const char* name : {"checkpoint_sha256", "subset_hash", "seed", "run_id", "config_id"})
    EXPECT_FALSE(file.attribute_as<std::string>(name).empty()) << name;
}

// So coarse a bisection finds the same sigma with a little noise on all weights and without, but not where
// layers are rescaled.
TEST_F(AuditCommand, ASettingThatMattersElsewhereAloneIsNotLeftOut) {
  train();
  const BinaryResult result =
      audit({"--only", "pac_bayes", "--set", "pac_bayes.tolerance=0.5", "--set", "pac_bayes.eps=0.003"});
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  const std::string definition = "pac-bayes-sigma-magnitude", rescaled = "relu_rescale_all";
  const std::vector<Row> usual = rows(definition, rescaled), exact = rows(definition, rescaled, "eps=0");
  ASSERT_EQ(usual.size(), 1u);
  ASSERT_EQ(exact.size(), 1u);
  ASSERT_EQ(usual[0].before, exact[0].before);
  EXPECT_EQ(exact[0].verdict, "invariant");
  EXPECT_NE(usual[0].after, exact[0].after);
}

// An error over examples excuses nothing: the examples are the same ones. One over draws does, for a network
// with units in other places draws other noise, also where so coarse a bisection has one outcome for all
// seeds.
TEST_F(AuditCommand, OnlyWhatIsDrawnHasAnErrorToStayWithin) {
  train();
  const BinaryResult result =
      audit({"--only", "gradient_statistics,pac_bayes", "--set", "pac_bayes.tolerance=0.2"});
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  int within_examples_error = 0, drawn_anew = 0;
  for (const char* definition : {"noise-scale-finite", "gsnr-finite", "gradient-norm-percentile-finite"}) {
    for (const Row& row : rows(definition, "relu_rescale")) {
      if (row.distance() <= 1e-6 * row.after) continue;
      EXPECT_EQ(row.verdict, "moved") << definition << ' ' << row.before << ' ' << row.after;
      within_examples_error += row.distance() < row.error();
    }
  }
  EXPECT_GT(within_examples_error, 0);
  for (const char* definition : {"pac-bayes-sigma", "pac-bayes-sigma-magnitude", "pac-bayes-sigma-rgm"}) {
    for (const Row& row : rows(definition, "unit_permutation")) {
      EXPECT_NE(row.verdict, "moved") << definition << ' ' << row.before << ' ' << row.after;
      drawn_anew += row.before != row.after;
    }
  }
  EXPECT_GT(drawn_anew, 0);
}

TEST_F(AuditCommand, WeightsBeforeABatchNormMayGrow) {
  train({"model = \"small_cnn\"", "micro_batch = 64"}, {"[small_cnn]\nwidths = [3, 4]\nnorm = \"batch\""});
  const BinaryResult result = audit({"--only", "top_eigenvalues,sharpness_sam"});
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  EXPECT_EQ(verdicts("hessian-lambda", "norm_scale"), Set{"moved"});
  EXPECT_EQ(verdicts("sam-first-order", "norm_scale"), Set{"moved"});
  EXPECT_EQ(verdicts("asam-all-ascended", "norm_scale", "eta=0, scaled=all"), Set{"invariant"});
}

// The optimiser's second moments and the initial weights take part, as those of a run in the other
// coordinates would.
TEST_F(AuditCommand, WhatTheRunKeepsBesideItsWeightsChangesPlacesToo) {
  train({"optimizer = \"adamw\""});
  const BinaryResult result = audit({"--only", "preconditioned_curvature,weight_norms"});
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  EXPECT_EQ(verdicts("preconditioned-lambda", "unit_permutation"), Set{"invariant"});
  EXPECT_EQ(verdicts("preconditioned-lambda", "relu_rescale"), Set{"moved"});
  EXPECT_EQ(verdicts("distance-from-start", "unit_permutation"), Set{"invariant"});
  EXPECT_EQ(verdicts("distance-from-start", "relu_rescale"), Set{"moved"});
  EXPECT_EQ(verdicts("path-norm", "relu_rescale_units"), Set{"invariant"});
}

TEST_F(AuditCommand, ReplacesAnAuditOnRequestAndNothingElse) {
  train();
  const std::vector<std::string> cheap = {"--only", "margins"};
  ASSERT_EQ(audit(cheap).exit_code, 0);
  const std::string first = read_file(path());
  BinaryResult result = audit(cheap);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--force"));
  EXPECT_EQ(read_file(path()), first);
  EXPECT_EQ(audit({"--only", "margins", "--force"}).exit_code, 0);
  const std::string foreign = folder_ + "/ckpt/start.h5", before = read_file(foreign);
  result = audit({"--only", "margins", "--force", "--out", foreign});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("not a basin/audit file"));
  EXPECT_EQ(read_file(foreign), before);
  result = audit({"--only", "margins", "--force", "--out", "/dev/null"});
  EXPECT_THAT(result.err, HasSubstr("/dev/null: not a regular file"));
}

TEST_F(AuditCommand, NamesItsFileAsTheCheckpointWasNamed) {
  train();
  folder_ = fs::proximate(folder_);
  EXPECT_THAT(audit({"--only", "margins"}).out, HasSubstr("\nin " + path() + "\n"));
  folder_ = fs::absolute(folder_).lexically_normal();
  EXPECT_THAT(audit({"--only", "margins", "--force"}).out, HasSubstr("\nin " + path() + "\n"));
}

TEST_F(AuditCommand, AFailedProbeIsAFailure) {
  train();
  const BinaryResult result =
      audit({"--only", "relative_flatness", "--set", "relative_flatness.layer=\"none\""});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("relative_flatness  failed: "));
  EXPECT_THAT(result.err, ::testing::EndsWith("basin: " + path() + ": failed: relative_flatness\n"));
}

TEST_F(AuditCommand, RefusesInOneLine) {
  train();
  EXPECT_THAT(audit({"--only", "sharpness"}).err, HasSubstr("sharpness"));
  EXPECT_THAT(audit({"--dtype", "float16"}).err, HasSubstr("float16"));
  EXPECT_THAT(audit({"--only", "noise_scale", "--set", "curvature.count=2"}).err, HasSubstr("curvature"));
  EXPECT_THAT(run_binary({"audit", folder_ + "/run.h5"}).err, HasSubstr("RUN/ckpt/<label>.h5"));
  EXPECT_THAT(run_binary({"audit", folder_ + "/ckpt/none.h5"}).err, HasSubstr("none.h5"));
  EXPECT_FALSE(fs::exists(path()));
}

}  // namespace
}  // namespace basin::testing
