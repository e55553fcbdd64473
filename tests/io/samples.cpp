#include "tests/io/samples.h"

#include "core/error.h"

namespace basin::testing {
namespace {

Table sample_train_table() {
  Table table{"train", "training, one row per update", {}, {}};
  table.columns = {{"update", "updates", "updates done", "updates", 1, {}},
                   {"loss", "nat", "batch loss", "batch-loss", 1, {}}};
  table.rows = {1, 2.5, 2, 2.25};
  return table;
}

Table sample_layers_table() {
  Table table{"layers", "norms by parameter", {}, {}};
  table.columns = {{"update", "updates", "updates done", "updates", 1, {}},
                   {"weight_norm", "weight", "weight norm", "norm", 3, {"a.weight", "a.bias", "b.weight"}},
                   {"trust_ratio", "1", "trust ratio", "trust-ratio", 3, {"a.weight", "a.bias", "b.weight"}}};
  table.rows = {1, 1, 2, 3, 0.1, NAN, 0.3,  //
                2, 4, 5, 6, 0.4, NAN, 0.6};
  table.attributes = {{"every", int64_t{2}}, {"note", std::string("x")}};
  return table;
}

}  // namespace

RunRecord sample_run() {
  RunRecord run;
  run.header.run_id = "0123456789ab";
  run.header.config_id = "ba9876543210";
  run.header.config = "batch_size = 512\nmodel = \"näive\"\n";
  run.header.created_utc = "2026-01-02T03:04:05Z";
  run.header.options = {{"zeta", true},
                        {"batch_size", int64_t{512}},
                        {"learning_rate", 0.1},
                        {"model", std::string("small_cnn")},
                        {"small_cnn.widths", std::vector<int64_t>{16, 32, 64}},
                        {"loss_levels", std::vector<double>{1.5, 0.5}},
                        {"sgd.exclude", std::vector<std::string>{"bias", "norm_weight"}},
                        {"milestones", std::vector<double>{}},
                        {"names", std::vector<std::string>{}},
                        {"nesterov", false}};
  run.header.provenance = {{"git_commit", "abc"}, {"argv", "basin train \"x\""}};
  run.header.rng = {{"seed_init", int64_t{-3}}};
  run.header.data = {{"name", std::string("synthetic")}, {"n_train", int64_t{200}}};
  run.header.parameters = {{"a.weight", "a", "weight", {4, 3}, 0, 12}, {"a.bias", "a", "bias", {4}, 12, 4}};
  run.status = RunState::finished;
  run.status_message = "done";
  run.updated_utc = "2026-01-02T03:05:00Z";
  run.tables["train"] = sample_train_table();
  run.tables["layers"] = sample_layers_table();
  run.tables["eval"] = {"eval",
                        "evaluation",
                        {{"update", "updates", "updates done", "updates", 1, {}},
                         {"train_loss", "nat", "training loss", "eval-loss", 1, {}},
                         {"test_acc", "1", "test accuracy", "eval-accuracy", 1, {}}},
                        {0, 2.3, 0.1, 2, 2.0, NAN}};
  run.outcomes["test"] = {{1, 0, 0, 1, 1, 1, 0, 1, 0, 1, 1},
                          {0.5f, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
                          {-1, -2, -3, 4, 5, 6, 7, 8, 9, 10, -0.125f},
                          {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 254}};
  run.summary = {{"updates", int64_t{2}}, {"test_acc", 0.625}, {"overshot", false}, {"steps_to_target", NAN}};
  run.events = {{0.5, "2026-01-02T03:04:06Z", "info", "started"},
                {1.5, "2026-01-02T03:04:07Z", "warn", "line\nbreak"}};
  return run;
}

Checkpoint sample_checkpoint() {
  Checkpoint c;
  c.run_id = "0123456789ab";
  c.config_id = "ba9876543210";
  c.config = "batch_size = 512\n";
  c.label = "loss-1.5";
  c.update = 7;
  c.journal_offset = 12345;
  c.progress = {{"examples", int64_t{1} << 60},
                {"best_loss", 0.1},
                {"done", false},
                {"protocol", std::string("B")},
                {"levels_left", std::vector<double>{0.5, 0.25}},
                {"checks", std::vector<int64_t>{3, 2, 1}},
                {"labels", std::vector<std::string>{"x", ""}}};
  // A channels-last weight: stored row-major all the same.
  const at::Tensor weight =
      at::arange(2 * 3 * 2 * 2, at::kFloat).reshape({2, 3, 2, 2}).contiguous(at::MemoryFormat::ChannelsLast);
  const float denormal = 1e-42f, nan = NAN;
  c.parameters = {{"conv1.weight", "conv1", ParameterKind::weight, weight},
                  {"conv1.bias", "conv1", ParameterKind::bias, at::tensor({denormal, nan})},
                  {"alpha.first", "alpha", ParameterKind::norm_weight, at::tensor({0.1, 0.2}, at::kDouble)}};
  c.buffers = {{"norm1.running_mean", at::tensor({1.0f, 2.0f})}};
  c.optimizer = {{"momentum/conv1.weight", at::ones({2, 3, 2, 2})},
                 {"updates", at::scalar_tensor(int64_t{7}, at::kLong)},
                 {"momentum/conv1.bias", at::zeros({2})}};
  c.generators = {{"dropout", at::arange(256, at::kByte)}};
  c.add_state("average", {{"conv1.weight", 0.5 * weight}, {"conv1.bias", at::tensor({denormal, nan})}});
  c.add_state("slow_weights", {{"conv1.weight", 2 * weight}});
  c.add_state("gradient_sum", {{"conv1.weight", 3 * weight}});
  c.data = {{"name", std::string("synthetic")}, {"n_train", int64_t{200}}};
  return c;
}

ProbeRecord sample_probe() {
  ProbeRecord p;
  p.run_id = "0123456789ab";
  p.config_id = "ba9876543210";
  p.probe = "top_eigenvalues";
  p.checkpoint = "end";
  p.status = ProbeStatus::not_converged;
  p.message = "2 of 3";
  p.attributes = {
      {"update", int64_t{7}}, {"train_loss", 1.25}, {"solver", std::string("spectra")}, {"exact", true}};
  p.provenance = {{"host", "here"}};
  p.quantities = {{.name = "lambda",
                   .definition = "hessian-top",
                   .units = "loss/weight^2",
                   .long_name = "leading eigenvalues",
                   .uncertainty_kind = UncertaintyKind::residual,
                   .value = {3, 2, NAN},
                   .uncertainty = {1e-3, 2e-3, NAN},
                   .entry_status = {ProbeStatus::ok, ProbeStatus::not_converged, ProbeStatus::nonfinite},
                   .is_vector = true},
                  {.name = "mu",
                   .definition = "hessian-top",
                   .units = "loss/weight^2",
                   .long_name = "a vector of one",
                   .uncertainty_kind = UncertaintyKind::residual,
                   .value = {3},
                   .uncertainty = {1e-3},
                   .entry_status = {ProbeStatus::ok},
                   .is_vector = true},
                  {.name = "b_simple",
                   .definition = "noise-scale",
                   .units = "examples",
                   .long_name = "noise scale",
                   .uncertainty_kind = UncertaintyKind::standard_error,
                   .status = ProbeStatus::not_resolved,
                   .value = {100},
                   .uncertainty = {7},
                   .ci_low = {80},
                   .ci_high = {130},
                   .entry_status = {ProbeStatus::not_resolved}}};
  return p;
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void expect_io_error(const std::function<void()>& call, const std::vector<std::string>& parts) {
  try {
    call();
    ADD_FAILURE() << "no IoError with " << ::testing::PrintToString(parts);
  } catch (const IoError& error) {
    for (const std::string& part : parts) EXPECT_THAT(error.what(), ::testing::HasSubstr(part));
    EXPECT_THAT(error.what(), ::testing::Not(::testing::HasSubstr("\n")));
    EXPECT_EQ(error.exit_code(), 4);
  }
}

void expect_same(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) || std::isnan(b[i]))
      EXPECT_EQ(std::isnan(a[i]), std::isnan(b[i])) << "entry " << i;
    else
      EXPECT_EQ(a[i], b[i]) << "entry " << i;
  }
}

namespace {

using NamedValues = std::vector<std::pair<std::string, OptionValue>>;

void expect_same_values(const NamedValues& a, const NamedValues& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    const double* number = std::get_if<double>(&a[i].second);
    if (number && std::isnan(*number))
      EXPECT_TRUE(std::isnan(std::get<double>(b[i].second))) << a[i].first;
    else
      EXPECT_EQ(a[i].second, b[i].second) << a[i].first;
  }
}

void expect_same_table(const Table& a, const Table& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.long_name, b.long_name);
  ASSERT_EQ(a.columns.size(), b.columns.size());
  for (size_t i = 0; i < a.columns.size(); ++i) {
    EXPECT_EQ(a.columns[i].name, b.columns[i].name);
    EXPECT_EQ(a.columns[i].units, b.columns[i].units);
    EXPECT_EQ(a.columns[i].long_name, b.columns[i].long_name);
    EXPECT_EQ(a.columns[i].definition, b.columns[i].definition);
    EXPECT_EQ(a.columns[i].width, b.columns[i].width);
    EXPECT_EQ(a.columns[i].labels, b.columns[i].labels);
  }
  expect_same(a.rows, b.rows);
  expect_same_values(a.attributes, b.attributes);
}

void expect_same_header(const RunHeader& a, const RunHeader& b) {
  EXPECT_EQ(a.run_id, b.run_id);
  EXPECT_EQ(a.config_id, b.config_id);
  EXPECT_EQ(a.config, b.config);
  EXPECT_EQ(a.created_utc, b.created_utc);
  expect_same_values(a.options, b.options);
  EXPECT_EQ(a.provenance, b.provenance);
  expect_same_values(a.rng, b.rng);
  expect_same_values(a.data, b.data);
  ASSERT_EQ(a.parameters.size(), b.parameters.size());
  for (size_t i = 0; i < a.parameters.size(); ++i) {
    EXPECT_EQ(a.parameters[i].name, b.parameters[i].name);
    EXPECT_EQ(a.parameters[i].layer, b.parameters[i].layer);
    EXPECT_EQ(a.parameters[i].kind, b.parameters[i].kind);
    EXPECT_EQ(a.parameters[i].shape, b.parameters[i].shape);
    EXPECT_EQ(a.parameters[i].offset, b.parameters[i].offset);
    EXPECT_EQ(a.parameters[i].numel, b.parameters[i].numel);
  }
}

}  // namespace

void expect_same(const RunRecord& a, const RunRecord& b) {
  expect_same_header(a.header, b.header);
  EXPECT_EQ(a.status, b.status);
  EXPECT_EQ(a.status_message, b.status_message);
  ASSERT_EQ(a.tables.size(), b.tables.size());
  for (const auto& [name, table] : a.tables) expect_same_table(table, b.tables.at(name));
  ASSERT_EQ(a.outcomes.size(), b.outcomes.size());
  for (const auto& [split, outcomes] : a.outcomes) {
    EXPECT_EQ(outcomes.correct, b.outcomes.at(split).correct);
    EXPECT_EQ(outcomes.loss, b.outcomes.at(split).loss);
    EXPECT_EQ(outcomes.margin, b.outcomes.at(split).margin);
    EXPECT_EQ(outcomes.predicted, b.outcomes.at(split).predicted);
  }
  expect_same_values(a.summary, b.summary);
  ASSERT_EQ(a.events.size(), b.events.size());
  for (size_t i = 0; i < a.events.size(); ++i) {
    EXPECT_EQ(a.events[i].level, b.events[i].level);
    EXPECT_EQ(a.events[i].text, b.events[i].text);
  }
}

}  // namespace basin::testing
