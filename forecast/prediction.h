// defines: ForecastRequest, PredictionFile; make_prediction(), prediction_toml(), write_prediction().
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "forecast/trials.h"

namespace basin {

struct ForecastRequest {
  std::string out, test_study;
  std::vector<std::string> sets;  // of the test study
  int64_t seeds = 5;              // that each trial will be run with: for the cost of the test runs
};

struct CellForecast {
  TestCell cell;
  std::vector<Prediction> predictions;  // by law
};

/// All that the prediction file says.
struct PredictionFile {
  ForecastRequest request;
  std::string test_sha256;
  SmallRuns inputs;
  std::vector<Evidence> evidence;
  std::vector<CellForecast> cells;
  double probe_cost = 0, test_cost = 0;  // image gradients

  /// Probes of the inputs over what the test runs are expected to cost.
  double probe_share() const { return probe_cost / test_cost; }
};

/// ConfigError where OUT holds runs of the test cells, where the test study has another model, data, loss or target than the runs in
/// OUT, or an optimiser without evidence.
PredictionFile make_prediction(const ForecastRequest& request);

/// docs/forecast.md describes the file. It names code, inputs and their hashes, and every quantile of every cell and law.
std::string prediction_toml(const PredictionFile& prediction);
/// ConfigError where the file exists: a prediction is made once.
void write_prediction(const std::string& path, const PredictionFile& prediction);

}  // namespace basin
