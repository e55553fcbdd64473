// collect() on a folder of runs written by io's writers: what stands in sweep.h5, on finished and unfinished
// sweeps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.h"
#include "core/files.h"
#include "io/run_file.h"
#include "io/schema.h"
#include "io/status_file.h"
#include "runs/folder.h"
#include "sweep/collect/collect.h"
#include "sweep/collect/rows.h"
#include "tests/support/temporary_folder.h"
#include "trainers/hooks/registry.h"

namespace basin {
namespace {
namespace fs = std::filesystem;

class Collect : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(at("runs")); }

  std::string at(const std::string& name) const { return folder_ / name; }

  static Table layers(int rows, const std::string& definition) {
    const std::vector<std::string> names = {"fc.weight", "fc.bias"};
    Table table{"layers", "norms", {{"update", "1", "updates", "updates", 1, {}}}, {}};
    table.columns.push_back({"weight_norm", "weight", "weight norm", "norm", 2, names});
    table.columns.push_back({"trust_ratio", "1", "trust ratio", definition, 2, names});
    for (int u = 1; u <= rows; ++u)
      table.rows.insert(table.rows.end(), {double(u), 1.0 + u, 2.0 + u, 0.5 * u, NAN});
    table.attributes = {{"every", int64_t{1}}};
    return table;
  }

  /// A finished run of three updates, and a probe of a 2-vector. SGD's has a row less of norms.
  void add_run(const std::string& id, int64_t seed, bool lamb) {
    RunRecord record;
    record.header.run_id = id;
    record.header.config_id = "c0ffee";
    record.header.config = "seed = 1\n";
    record.header.options = {
        {"protocol", std::string("B")}, {"optimizer", std::string(lamb ? "lamb" : "sgd")},
        {"batch_size", int64_t{256}},   {"seed", seed},
        {"learning_rate", 0.1},         {"small_cnn.widths", std::vector<int64_t>{8, 16}}};
    if (lamb) record.header.options.emplace_back("lamb.beta1", 0.9);
    record.header.data = {
        {"name", std::string("synthetic")}, {"pixels", std::string("synthetic")}, {"n_test", int64_t{3}}};
    record.header.parameters = {{"fc.weight", "fc", "weight", {2, 2}, 0, 4},
                                {"fc.bias", "fc", "bias", {2}, 4, 2}};
    record.status = RunState::finished;
    Table train{
        "train",
        "training",
        {{"update", "updates", "updates done", "updates", 1, {}}, {"loss", "nat", "loss", "loss", 1, {}}},
        {}};
    for (int u = 1; u <= 3; ++u) train.rows.insert(train.rows.end(), {double(u), 2.0 / u});
    record.tables["train"] = train;
    record.tables["layers"] = layers(lamb ? 3 : 2, lamb ? "of lamb" : "none");
    record.outcomes["test"] = {{1, 0, 1}, {0.1f, 2.f, 0.3f}, {1.f, -1.f, 2.f}, {4, 5, 6}};
    if (lamb) record.outcomes["test@loss-1.5"] = {{1, 1, 0}, {0.5f, 0.6f, 4.f}, {1.f, 1.f, -2.f}};
    record.summary = {{"updates", int64_t{3}}, {"test_acc", 2.0 / 3}, {"overshot", false}};
    fs::create_directories(at("runs/" + id + "/probes"));
    write_run_file(at("runs/" + id + "/run.h5"), record);
    RunStatus status;
    status.run_id = id;
    status.status = RunState::finished;
    write_status(at("runs/" + id + "/status.json"), status);

    ProbeRecord probe;
    probe.run_id = id;
    probe.probe = "top_eigenvalues";
    probe.checkpoint = "end";
    probe.attributes = {{"update", int64_t{3}}, {"train_loss", 0.66}, {"n_examples", int64_t{100}}};
    probe.quantities = {{.name = "lambda",
                         .definition = "hessian-lambda",
                         .units = "loss/weight^2",
                         .long_name = "largest",
                         .uncertainty_kind = UncertaintyKind::residual,
                         .value = {9.0, 4.0},
                         .uncertainty = {0.01, 0.02}}};
    write_probe_file(at("runs/" + id + "/probes/end.top_eigenvalues.h5"), probe);
  }

  testing::TemporaryFolder folder_;
};

TEST_F(Collect, EveryOptionSummaryAndProbeIsAColumn) {
  add_run("aaaaaaaaaaaa", 1, true);
  add_run("bbbbbbbbbbbb", 1, false);
  collect(folder_.path());
  const h5::File file = open_schema_file(at("sweep.h5"), kSweepSchema);
  const h5::Group runs = file.group("runs");
  EXPECT_THAT(runs.dataset("run_id").read_texts(), ::testing::ElementsAre("aaaaaaaaaaaa", "bbbbbbbbbbbb"));
  EXPECT_THAT(runs.dataset("small_cnn.widths").read_texts(), ::testing::Each("[8, 16]"));
  EXPECT_THAT(runs.dataset("updates").read<int64_t>(), ::testing::ElementsAre(3, 3));
  EXPECT_THAT(runs.dataset("overshot").read<uint8_t>(), ::testing::ElementsAre(0, 0));
  const std::vector<double> beta = runs.dataset("lamb.beta1").read<double>();
  EXPECT_EQ(beta[0], 0.9);
  EXPECT_TRUE(std::isnan(beta[1])) << "an option that the run does not have is missing, not 0";
  EXPECT_THAT(runs.dataset("probe.end.top_eigenvalues.lambda_2").read<double>(),
              ::testing::ElementsAre(4.0, 4.0));
  EXPECT_THAT(runs.dataset("probe.end.top_eigenvalues.lambda_1.uncertainty").read<double>(),
              ::testing::Each(0.01));
  EXPECT_THAT(runs.dataset("test_acc").scale_paths(0), ::testing::ElementsAre("/runs/run_id"));
  EXPECT_EQ(file.group("probes").dataset("value").read<double>().size(), 4u);
}

TEST_F(Collect, OutcomesAndCurvesAreCopied) {
  add_run("aaaaaaaaaaaa", 1, true);
  add_run("bbbbbbbbbbbb", 1, false);
  collect(folder_.path());
  const h5::File file = open_schema_file(at("sweep.h5"), kSweepSchema);
  EXPECT_THAT(file.dataset("outcomes/test/correct").read<uint8_t>(),
              ::testing::ElementsAre(1, 0, 1, 1, 0, 1));
  EXPECT_THAT(file.dataset("outcomes/test/predicted").read<uint8_t>(),
              ::testing::ElementsAre(4, 5, 6, 4, 5, 6));
  EXPECT_EQ(file.dataset("outcomes/test/loss").read<float>()[1], 2.f);
  const std::vector<uint8_t> level = file.dataset("outcomes/test@loss-1.5/correct").read<uint8_t>();
  EXPECT_EQ(std::count(level.begin(), level.end(), 255), 3) << "a run without that level";
  EXPECT_EQ(std::count(level.begin(), level.end(), 1), 2);
  EXPECT_FALSE(file.has("outcomes/test@loss-1.5/predicted")) << "written before there were any";
  EXPECT_THAT(file.dataset("curves/train/loss").read<double>(),
              ::testing::ElementsAre(2, 1, 2.0 / 3, 2, 1, 2.0 / 3));
}

TEST_F(Collect, LayersAreCopiedANetworkAGroup) {
  using ::testing::ElementsAre;
  using ::testing::NanSensitiveDoubleEq;
  add_run("aaaaaaaaaaaa", 1, true);
  add_run("bbbbbbbbbbbb", 1, false);
  add_run("cccccccccccc", 1, true);
  RunRecord other = read_run_file(at("runs/cccccccccccc/run.h5"));
  for (Column& column : other.tables.at("layers").columns)
    if (!column.labels.empty()) column.labels[0] = "deep.weight";
  other.header.parameters[0].name = "deep.weight";
  write_run_file(at("runs/cccccccccccc/run.h5"), other);
  collect(folder_.path());
  const h5::Group layers = open_schema_file(at("sweep.h5"), kSweepSchema).group("layers");
  const h5::Group one = layers.group("1"), two = layers.group("2");
  EXPECT_THAT(two.dataset("run_id").read_texts(), ElementsAre("cccccccccccc"));
  EXPECT_THAT(two.dataset("parameter").read_texts(), ElementsAre("deep.weight", "fc.bias"));
  EXPECT_THAT(one.dataset("run_id").read_texts(), ElementsAre("aaaaaaaaaaaa", "bbbbbbbbbbbb"));
  EXPECT_THAT(one.dataset("kind").read_texts(), ElementsAre("weight", "bias"));
  EXPECT_THAT(one.dataset("every").read<int64_t>(), ElementsAre(1, 1));
  EXPECT_THAT(one.dataset("trust_ratio_definition").read_texts(), ElementsAre("of lamb", "none"));
  EXPECT_THAT(one.dataset("update").read<double>(), ElementsAre(1, 2, 3, 1, 2, NanSensitiveDoubleEq(NAN)));
  EXPECT_THAT(one.dataset("trust_ratio").shape(), ElementsAre(2, 3, 2));
  EXPECT_THAT(one.dataset("trust_ratio").scale_paths(2), ElementsAre("/layers/1/parameter"));
  const std::vector<double> norms = one.dataset("weight_norm").read<double>();
  EXPECT_THAT(
      norms, ElementsAre(2, 3, 3, 4, 4, 5, 2, 3, 3, 4, NanSensitiveDoubleEq(NAN), NanSensitiveDoubleEq(NAN)));
  EXPECT_EQ(one.dataset("trust_ratio").read<double>()[4], 1.5);
}

TEST_F(Collect, LayersWithOtherColumnsAreAGroupOfTheirOwn) {
  using ::testing::ElementsAre;
  add_run("aaaaaaaaaaaa", 1, true);
  add_run("bbbbbbbbbbbb", 1, true);
  RunRecord other = read_run_file(at("runs/bbbbbbbbbbbb/run.h5"));
  other.tables.at("layers").columns[1].name = "update_norm";  // the last column is the same
  write_run_file(at("runs/bbbbbbbbbbbb/run.h5"), other);
  collect(folder_.path());
  const h5::Group layers = open_schema_file(at("sweep.h5"), kSweepSchema).group("layers");
  EXPECT_THAT(layers.dataset("1/weight_norm").shape(), ElementsAre(1, 3, 2));
  EXPECT_THAT(layers.dataset("2/update_norm").shape(), ElementsAre(1, 3, 2));
  EXPECT_THAT(layers.dataset("2/run_id").read_texts(), ElementsAre("bbbbbbbbbbbb"));
}

TEST_F(Collect, TheTrustRatiosDefinitionIsThatOfItsColumnWhereverItStands) {
  add_run("aaaaaaaaaaaa", 1, true);
  RunRecord record = read_run_file(at("runs/aaaaaaaaaaaa/run.h5"));
  std::vector<Column>& columns = record.tables.at("layers").columns;
  std::swap(columns[1], columns[2]);
  write_run_file(at("runs/aaaaaaaaaaaa/run.h5"), record);
  collect(folder_.path());
  const h5::Group layers = open_schema_file(at("sweep.h5"), kSweepSchema).group("layers");
  EXPECT_THAT(layers.dataset("1/trust_ratio_definition").read_texts(), ::testing::ElementsAre("of lamb"));
}

TEST_F(Collect, LayersKeepLargeUpdatesExact) {
  add_run("aaaaaaaaaaaa", 1, true);
  RunRecord record = read_run_file(at("runs/aaaaaaaaaaaa/run.h5"));
  const double large = (1 << 24) + 1;  // the first whole number that float32 lacks
  record.tables.at("layers").rows[static_cast<size_t>(2 * record.tables.at("layers").row_width())] = large;
  write_run_file(at("runs/aaaaaaaaaaaa/run.h5"), record);
  collect(folder_.path());
  const h5::Group layers = open_schema_file(at("sweep.h5"), kSweepSchema).group("layers");
  EXPECT_EQ(layers.dataset("1/update").read<double>()[2], large);
  EXPECT_EQ(layers.dataset("1/weight_norm").dtype(), at::kFloat);
}

TEST_F(Collect, WhatARunMeasuredIsNotCalledAnOption) {
  add_run("aaaaaaaaaaaa", 1, true);
  RunRecord record = read_run_file(at("runs/aaaaaaaaaaaa/run.h5"));
  record.header.options.emplace_back("scaled_eps", 1e-8);
  record.header.options.emplace_back("warmup_updates", int64_t{5});
  record.summary.emplace_back("tta_test_loss", 0.5);
  record.summary.emplace_back("average_test_acc", 0.5);
  record.summary.emplace_back("update_seconds", 2.0);
  record.summary.emplace_back("nobody_knows", 7.0);  // as of a hook that this program lacks
  record.header.options.emplace_back("without_trust_ratio", std::vector<std::string>{"fc.bias"});
  write_run_file(at("runs/aaaaaaaaaaaa/run.h5"), record);
  collect(folder_.path());
  const h5::Group runs = open_schema_file(at("sweep.h5"), kSweepSchema).group("runs");
  for (const auto& [column, units] : std::map<std::string, std::string>{{"scaled_eps", "loss/weight"},
                                                                        {"warmup_updates", "updates"},
                                                                        {"tta_test_loss", "nat"},
                                                                        {"average_test_acc", "1"},
                                                                        {"update_seconds", "s"}}) {
    EXPECT_EQ(runs.dataset(column).attribute_as<std::string>("units"), units) << column;
    EXPECT_NE(runs.dataset(column).attribute_as<std::string>("definition"), "option") << column;
  }
  const auto definition_of = [&](const std::string& column) {
    return runs.dataset(column).attribute_as<std::string>("definition");
  };
  EXPECT_EQ(definition_of("nobody_knows"), "undeclared");
  EXPECT_EQ(definition_of("without_trust_ratio"), "without-trust-ratio");
  EXPECT_EQ(definition_of("lamb.beta1"), "option");
  EXPECT_EQ(definition_of("dataset.name"), "dataset");
}

TEST_F(Collect, HooksSayWhatTheirNumbersAre) {
  add_run("aaaaaaaaaaaa", 1, true);
  RunRecord record = read_run_file(at("runs/aaaaaaaaaaaa/run.h5"));
  for (const HookEntry& entry : hook_registry())
    for (const Column& number : entry.summary) record.summary.emplace_back(number.name, 0.5);
  write_run_file(at("runs/aaaaaaaaaaaa/run.h5"), record);
  collect(folder_.path());
  const h5::Group runs = open_schema_file(at("sweep.h5"), kSweepSchema).group("runs");
  size_t count = 0;
  for (const HookEntry& entry : hook_registry()) {
    for (const Column& number : entry.summary) {
      const h5::DataSet data = runs.dataset(number.name);
      EXPECT_EQ(data.attribute_as<std::string>("units"), number.units) << number.name;
      EXPECT_EQ(data.attribute_as<std::string>("long_name"), number.long_name) << number.name;
      EXPECT_EQ(data.attribute_as<std::string>("definition"), number.definition) << number.name;
      ++count;
    }
  }
  EXPECT_GE(count, 8u);
}

TEST_F(Collect, AnUnfinishedSweepGivesAPartialTable) {
  add_run("aaaaaaaaaaaa", 1, true);
  fs::create_directories(at("runs/cccccccccccc"));
  write_file_atomically(at("runs/cccccccccccc/config.toml"),
                        "optimizer = \"sgd\"\nbatch_size = 4096\nseed = 2\nprotocol = \"B\"\n");
  collect(folder_.path());
  const h5::Group runs = open_schema_file(at("sweep.h5"), kSweepSchema).group("runs");
  EXPECT_THAT(runs.dataset("status").read_texts(), ::testing::ElementsAre("finished", "queued"));
  EXPECT_THAT(runs.dataset("batch_size").read<int64_t>(), ::testing::ElementsAre(256, 4096));
  EXPECT_TRUE(std::isnan(runs.dataset("test_acc").read<double>()[1]));
  EXPECT_THAT(read_file(at("table.md")), ::testing::HasSubstr("| 4096 | sgd |"));
}

TEST_F(Collect, ARunThatNeverBeganBelongsToItsCell) {
  const std::string text = "protocol = \"B\"\nbatch_size = 512\n[sweep]\nseed = [1, 2, 3]\n";
  write_file_atomically(at("study.toml"), text);
  const std::vector<Cell> cells = expand(read_study(at("study.toml"), {}));
  add_run("aaaaaaaaaaaa", 1, true);                       // not the study's
  fs::create_directories(at("runs/" + cells[0].run_id));  // with nothing in it
  queue_run(at("runs/" + cells[1].run_id), cells[1]);
  fs::create_directories(at("runs/" + cells[2].run_id));
  write_file_atomically(at("runs/" + cells[2].run_id + "/run.h5"), "not HDF5");
  ::testing::internal::CaptureStderr();
  collect(folder_.path());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::HasSubstr("left out: aaaaaaaaaaaa"));
  const h5::File file = open_schema_file(at("sweep.h5"), kSweepSchema);
  EXPECT_EQ(file.attribute_as<std::string>("study"), text);
  const h5::Group runs = file.group("runs");
  EXPECT_THAT(runs.dataset("run_id").read_texts(),
              ::testing::ElementsAre(cells[0].run_id, cells[1].run_id, cells[2].run_id));
  EXPECT_THAT(runs.dataset("config_id").read_texts(), ::testing::Each(cells[0].options.config_id()));
  EXPECT_THAT(runs.dataset("batch_size").read<int64_t>(), ::testing::Each(512));
  EXPECT_THAT(runs.dataset("status").read_texts(), ::testing::ElementsAre("queued", "queued", "failed"));
  EXPECT_THAT(read_file(at("table.md")),
              ::testing::HasSubstr("| 1 of 3 failed, 2 of 3 not begun |"));  // one line
}

TEST_F(Collect, ADamagedRunIsARowThatSaysSo) {
  add_run("aaaaaaaaaaaa", 1, true);
  fs::create_directories(at("runs/dddddddddddd"));
  const std::string whole = read_file(at("runs/aaaaaaaaaaaa/run.h5"));
  write_file_atomically(at("runs/dddddddddddd/run.h5"), whole.substr(0, whole.size() / 2));
  collect(folder_.path());
  const h5::Group runs = open_schema_file(at("sweep.h5"), kSweepSchema).group("runs");
  const std::vector<std::string> ids = runs.dataset("run_id").read_texts();
  const size_t damaged = ids[0] == "dddddddddddd" ? 0 : 1;
  EXPECT_EQ(runs.dataset("status").read_texts()[damaged], "failed");
  EXPECT_THAT(runs.dataset("status_message").read_texts()[damaged],
              ::testing::HasSubstr("dddddddddddd/run.h5"));
}

TEST_F(Collect, AFolderWithoutRunsIsAnError) { EXPECT_THROW(collect(folder_.path()), IoError); }

TEST_F(Collect, LongTablesKeepTheirEnds) {
  add_run("aaaaaaaaaaaa", 1, false);
  RunRecord record = read_run_file(at("runs/aaaaaaaaaaaa/run.h5"));
  const int64_t length = 3 * kTrainRows + 17;
  for (const char* name : {"train", "layers"}) {
    Table& table = record.tables[name];
    const int64_t width = table.row_width();
    table.rows.assign(static_cast<size_t>(length * width), 1.0);
    for (int64_t u = 1; u <= length; ++u)
      table.rows[static_cast<size_t>((u - 1) * width)] = static_cast<double>(u);
  }
  write_run_file(at("runs/aaaaaaaaaaaa/run.h5"), record);
  collect(folder_.path());
  const h5::File file = open_schema_file(at("sweep.h5"), kSweepSchema);
  for (const auto& [path, limit] :
       {std::pair{"curves/train/update", kTrainRows}, {"layers/1/update", kLayersRows}}) {
    const std::vector<double> update = file.dataset(path).read<double>();
    ASSERT_EQ(static_cast<int64_t>(update.size()), limit) << path;
    EXPECT_EQ(update.front(), 1);
    EXPECT_EQ(update.back(), length);
    EXPECT_TRUE(std::is_sorted(update.begin(), update.end()));
  }
}

}  // namespace
}  // namespace basin
