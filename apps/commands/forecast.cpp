#include <CLI/CLI.hpp>

#include "apps/arguments.h"
#include "apps/subcommands.h"
#include "core/build_info.h"
#include "core/error.h"
#include "core/messages.h"
#include "forecast/prediction.h"
#include "forecast/seeds.h"

namespace basin {
namespace {

struct ForecastArguments {
  ForecastRequest request;
  std::string file, seeds_of, model;
};

std::vector<std::string> law_names() {
  std::vector<std::string> names;
  for (const Law& law : forecast_laws()) names.push_back(law.name);
  return names;
}

std::string updates_text(double log_updates) {
  if (std::isnan(log_updates)) return "-";
  return std::isinf(log_updates) ? "missed" : fmt::format("{:.0f}", std::exp(log_updates));
}

void print(const PredictionFile& prediction, const std::string& model) {
  fmt::print("{:>10} {:>8} {:>6} {:<13}", "optimizer", "batch", "cap", "model");
  for (const double level : kLevels) fmt::print(" {:>7}", fmt::format("{:g} %", 100 * level));
  fmt::print(" {:>7}\n", "missed");
  for (const CellForecast& forecast : prediction.cells) {
    for (size_t i = 0; i < forecast.predictions.size(); ++i) {
      const std::string& name = forecast_laws()[i].name;
      if (!model.empty() && model != name) continue;
      fmt::print("{:>10} {:>8} {:>6} {:<13}", forecast.cell.optimizer, forecast.cell.batch,
                 forecast.cell.cap(), name);
      for (const double q : forecast.predictions[i].quantiles) fmt::print(" {:>7}", updates_text(q));
      fmt::print(" {:>7}\n", std::isnan(forecast.predictions[i].not_reached)
                                 ? "-"
                                 : fmt::format("{:.2f}", forecast.predictions[i].not_reached));
      if (!forecast.predictions[i].reason.empty())
        fmt::print(stderr, "note: {} B={} {}: {}\n", forecast.cell.optimizer, forecast.cell.batch, name,
                   forecast.predictions[i].reason);
    }
  }
  fmt::print("probes: {:.3g} image gradients, {:.1f} % of what the test runs are expected to cost\n",
             prediction.probe_cost, 100 * prediction.probe_share());
  if (prediction.probe_share() > 0.1)
    warn("the probes cost more than a tenth of the test runs; the rules allow a tenth");
  if (std::string(build_git_dirty()) != "false")
    warn(fmt::format("this program isn't a commit (git_dirty = {}): its code is not frozen",
                     build_git_dirty()));
}

int forecast(const ForecastArguments& arguments) {
  if (!arguments.seeds_of.empty()) {
    for (const int64_t seed : seeds_of_prediction(arguments.seeds_of, arguments.request.seeds))
      fmt::print("{}\n", seed);
    return 0;
  }
  if (arguments.request.out.empty() || arguments.request.test_study.empty() || arguments.file.empty())
    throw ConfigError("forecast: OUT, --test and --prediction are needed; or --seeds FILE");
  const PredictionFile prediction = make_prediction(arguments.request);
  write_prediction(arguments.file, prediction);
  print(prediction, arguments.model);
  fmt::print("{}\n", arguments.file);
  return 0;
}

}  // namespace

void add_forecast(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<ForecastArguments>();
  CLI::App* command = app.add_subcommand("forecast",
                                         "Predict the updates to a target at large batch sizes from runs at "
                                         "small ones, before the large are run");
  command->add_option("OUT", arguments->request.out,
                      "folder of a sweep at batch sizes up to 256, with probes");
  command->add_option("--test", arguments->request.test_study,
                      "study file of the runs that are predicted: sizes, optimisers, rates, target and cap");
  command->add_option("--prediction", arguments->file, "the file to write; it must not exist");
  take_one_of(*command->add_option("--model", arguments->model, "print this model alone; the file has all"),
              "model", law_names());
  command->add_option("--seeds", arguments->seeds_of,
                      "print the seeds that follow from this prediction file, and exit");
  command->add_option("--count", arguments->request.seeds, "number of seeds of the test runs (5)")
      ->check(CLI::Range(1, 10000));
  add_set_option(*command, arguments->request.sets);
  command->callback([arguments, &action] { action = [arguments] { return forecast(*arguments); }; });
}

}  // namespace basin
