#include "forecast/prediction.h"

#include <algorithm>
#include <filesystem>

#include "core/build_info.h"
#include "core/error.h"
#include "core/files.h"
#include "core/hash.h"
#include "core/provenance.h"
#include "forecast/comparison.h"

namespace basin {
namespace {

constexpr const char* kSchemaVersion = "1.0.0";

std::string number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return to_toml(OptionValue(value));
}

template <class Range>
std::string numbers(const Range& values) {
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(number(value));
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

std::string quoted(const std::string& text) { return to_toml(OptionValue(text)); }

const Evidence& evidence_of(const PredictionFile& prediction, const std::string& optimizer) {
  return *std::find_if(prediction.evidence.begin(), prediction.evidence.end(),
                       [&](const Evidence& e) { return e.optimizer == optimizer; });
}

void take_evidence(PredictionFile& made, const std::string& optimizer) {
  for (const Evidence& known : made.evidence)
    if (known.optimizer == optimizer) return;
  made.evidence.push_back(evidence_for(optimizer, made.inputs.runs, made.request.out));
}

void require_same(const ForecastRequest& request, const std::string& small, const std::string& test) {
  if (small != test)
    throw ConfigError(fmt::format("{} and {} differ in {}: one forecast is of one setting", request.out,
                                  request.test_study, compared_difference(small, test)));
}

void require_same_setting(const PredictionFile& made, const std::vector<TestCell>& cells) {
  for (const TestCell& cell : cells)
    require_same(made.request, made.inputs.runs.front().setting, cell.setting);
}

std::string head(const PredictionFile& prediction) {
  std::string text =
      "# Made by `basin forecast`: don't edit it. Its SHA-256 gives the seeds of the test runs.\n";
  text += fmt::format("schema_name = \"basin/prediction\"\nschema_version = \"{}\"\n", kSchemaVersion);
  text +=
      fmt::format("created_utc = \"{}\"\nbasin = \"{}\"\ngit_commit = \"{}\"\ngit_dirty = {}\n", utc_now(),
                  build_version(), build_git_commit(), std::string(build_git_dirty()) != "false");
  text += fmt::format("levels = {}\n", numbers(kLevels));
  text += "quantity = \"natural logarithm of the updates to the target at the fastest of the rates\"\n";
  return text +
         fmt::format("\n[test]\nstudy = {}\nsha256 = \"{}\"\nset = {}\nseeds = {}\n",
                     quoted(std::filesystem::path(prediction.request.test_study).filename().string()),
                     prediction.test_sha256, to_toml(OptionValue(prediction.request.sets)),
                     prediction.request.seeds) +
         fmt::format("\n[probes]\ncost = {}\ntest_cost = {}\nshare = {}\nwithin_a_tenth = {}\n",
                     number(prediction.probe_cost), number(prediction.test_cost),
                     number(prediction.probe_share()), prediction.probe_share() <= 0.1);
}

std::string text_of(const Evidence& evidence) {
  std::string text = fmt::format(
      "\n[[evidence]]\noptimizer = {}\nexamples = {}\nfloor = {}\nnoise_scale = {}\n",
      quoted(evidence.optimizer), evidence.examples, number(evidence.floor), number(evidence.noise_scale));
  text += fmt::format("probed_batch_size = {}\n", evidence.probed_batch);
  std::vector<std::string> rows;
  for (const TunedSize& size : evidence.sizes)
    rows.push_back(fmt::format("{{ batch_size = {}, learning_rate = {}, updates = {}, effective = {} }}",
                               size.batch, number(size.rate), number(size.updates), number(size.effective)));
  return text + fmt::format("sizes = [{}]\n", fmt::join(rows, ", "));
}

std::string text_of(const CellForecast& forecast) {
  const TestCell& cell = forecast.cell;
  std::string text = fmt::format(
      "\n[[cell]]\noptimizer = {}\nbatch_size = {}\nexamples = {}\ntarget_loss = {}\ncap = "
      "{}\nlearning_rates = "
      "{}\n",
      quoted(cell.optimizer), cell.batch, cell.examples, number(cell.target), cell.cap(),
      numbers(cell.rates));
  for (size_t i = 0; i < forecast.predictions.size(); ++i) {
    const Prediction& prediction = forecast.predictions[i];
    text += fmt::format("[[cell.model]]\nname = {}\nquantiles = {}\nnot_reached = {}\n",
                        quoted(forecast_laws()[i].name), numbers(prediction.quantiles),
                        number(prediction.not_reached));
    if (!prediction.reason.empty()) text += fmt::format("reason = {}\n", quoted(prediction.reason));
  }
  return text;
}

}  // namespace

PredictionFile make_prediction(const ForecastRequest& request) {
  PredictionFile made;
  made.request = request;
  made.inputs = read_small_runs(request.out);
  made.test_sha256 = sha256_of_file(request.test_study);
  const Study study = read_study(request.test_study, request.sets);
  const std::vector<TestCell> cells =
      test_cells(study, made.inputs.runs.front().examples, request.test_study);
  require_same_setting(made, cells);
  for (const TestCell& cell : cells) {
    take_evidence(made, cell.optimizer);
    require_same(request, evidence_of(made, cell.optimizer).arm, cell.arm);
    CellForecast& forecast = made.cells.emplace_back(CellForecast{cell, {}});
    for (const Law& law : forecast_laws())
      forecast.predictions.push_back(predict_cell(law, evidence_of(made, cell.optimizer), cell));
    made.test_cost += expected_updates(forecast.predictions.front(), cell) * cell.gradients *
                      static_cast<double>(cell.rates.size()) * static_cast<double>(request.seeds);
  }
  for (const SmallRun& run : made.inputs.runs) made.probe_cost += run.probe_cost;
  return made;
}

std::string prediction_toml(const PredictionFile& prediction) {
  std::string text = head(prediction);
  for (const Evidence& evidence : prediction.evidence) text += text_of(evidence);
  for (const CellForecast& cell : prediction.cells) text += text_of(cell);
  for (const InputFile& file : prediction.inputs.files)
    text += fmt::format("\n[[input]]\npath = {}\nsha256 = \"{}\"\n", quoted(file.path), file.sha256);
  return text;
}

void write_prediction(const std::string& path, const PredictionFile& prediction) {
  if (std::filesystem::exists(path))
    throw ConfigError(path + ": a prediction is made once; name a file that isn't there");
  write_file_atomically(path, prediction_toml(prediction));
}

}  // namespace basin
