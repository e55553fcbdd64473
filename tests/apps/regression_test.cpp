// Small CIFAR models, trained for a fixed number of updates on the embedded images and probed: the whole chain from the
// pixels to B_simple, pinned. One thread. A change of any number here is a change of what users would have published.
#include <gtest/gtest.h>

#include "apps/probing.h"
#include "apps/train.h"
#include "io/probe_file.h"
#include "io/run_file.h"
#include "tests/support/temporary_folder.h"

namespace basin {
namespace {

struct Pinned {
  const char* name;
  const char* settings;  // on top of kCommon
  double train_loss, test_loss, train_accuracy, lambda_1, phi, b_simple;
};

// What GoogleTest shows of a parameter: else the bytes of its pointers, another text in every build.
void PrintTo(const Pinned& pinned, std::ostream* out) { *out << pinned.name; }

constexpr const char* kCommon = R"(
protocol = "A-updates"
updates = 12
batch_size = 64
micro_batch = 32
ghost_batch = 16
learning_rate = 0.05
dtype = "float64"
[data]
set = "cifar10-5k"
train_examples = 256
test_examples = 100
[runtime]
device = "cpu"
threads = 1
[probes]
run = ["top_eigenvalues", "sharpness_keskar", "noise_scale"]
at = ["end"]
subset = 64
dtype = "float64"
[top_eigenvalues]
count = 1
tolerance = 1e-6
[sharpness_keskar]
epsilons = [1e-3]
spaces = ["full"]
iterations = 3
)";

// float64 from pixels to probes, so that another processor's order of sums (1e-16 a sum, some 1e5 sums, 12 updates) moves
// nothing beyond 1e-9; what is allowed is a hundred times that.
constexpr double kRelative = 1e-7;
// The eigenpair is solved to a relative residual of 1e-6, so its value to better than that.
constexpr double kEigenvalue = 1e-5;
// Three L-BFGS-B iterations: a line search may accept another trial point when the loss moves in its last digits.
constexpr double kPhi = 1e-4;

const Pinned kPinned[] = {
    {"small_cnn", "model = \"small_cnn\"\n[small_cnn]\nwidths = [4, 8]\n", 2.20992141632, 2.27104245052, 0.15234375, 5.85365507935, 1.47296638849, 24.2270032736},
    {"keskar_c1", "model = \"keskar_c1\"\noptimizer = \"lamb\"\n[keskar_c1]\nwidth = 4\nhidden = [16, 8]\n", 2.25231055307, 2.28936063412, 0.13671875, 40.2074218082, 1.54701530229, 33.4652817718},
    {"resnet20", "model = \"resnet20\"\noptimizer = \"lars\"\n[resnet20]\nwidth = 4\nblocks = 1\n[lars]\ntrust_coefficient = 0.02\n",
     2.65184973141, 2.54148067054, 0.16015625, 24.6152392893, 3.08401053558, 27.212226644},
};

double summary_value(const RunRecord& run, const std::string& name) {
  for (const auto& [key, value] : run.summary)
    if (key == name) return std::get<double>(value);
  return NAN;
}

double headline(const std::string& folder, const std::string& probe, const std::string& quantity) {
  const ProbeRecord record = read_probe_file(folder + "/probes/end." + probe + ".h5");
  for (const ProbeQuantity& q : record.quantities) {
    if (q.name != quantity) continue;
    EXPECT_EQ(q.status, "ok") << quantity << ": " << record.message;
    return q.value.at(0);
  }
  return NAN;
}

class RegressionTest : public ::testing::TestWithParam<Pinned> {};

TEST_P(RegressionTest, TrainingAndProbesGiveThePinnedNumbers) {
  const Pinned& pinned = GetParam();
  const testing::TemporaryFolder out;
  RunOptions cell = run_options_from(parse_toml(pinned.settings, "model"), {});
  OptionTable table = cell.table();
  set_all(table, parse_toml(kCommon, "common").entries);

  const std::string folder = run_folder(out.path(), cell);
  EXPECT_EQ(train_run(cell, folder), "finished");
  probe_run(folder, {cell.probes, cell.probe_options, cell.runtime, false});

  const RunRecord run = read_run_file(folder + "/run.h5");
  const double measured[] = {summary_value(run, "train_loss"),
                             summary_value(run, "test_loss"),
                             summary_value(run, "train_acc"),
                             headline(folder, "top_eigenvalues", "lambda"),
                             headline(folder, "sharpness_keskar", "phi_full_1e-3"),
                             headline(folder, "noise_scale", "b_simple_finite")};
  // To pin anew after a deliberate change, copy this line.
  const std::string line = fmt::format("{:.12g}", fmt::join(measured, ", "));
  EXPECT_NEAR(measured[0], pinned.train_loss, kRelative * pinned.train_loss) << line;
  EXPECT_NEAR(measured[1], pinned.test_loss, kRelative * pinned.test_loss) << line;
  EXPECT_DOUBLE_EQ(measured[2], pinned.train_accuracy) << line;
  EXPECT_NEAR(measured[3], pinned.lambda_1, kEigenvalue * pinned.lambda_1) << line;
  EXPECT_NEAR(measured[4], pinned.phi, kPhi * pinned.phi) << line;
  EXPECT_NEAR(measured[5], pinned.b_simple, kRelative * pinned.b_simple) << line;
}

INSTANTIATE_TEST_SUITE_P(SmallCifarModels, RegressionTest, ::testing::ValuesIn(kPinned),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace basin
