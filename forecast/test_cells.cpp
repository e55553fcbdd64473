#include "forecast/test_cells.h"

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "forecast/comparison.h"
#include "forecast/small_only.h"
#include "optim/schedule.h"
#include "sweep/cost_model.h"
#include "trainers/batch_plan.h"

namespace basin {
namespace {

void require_test_cell(const Cell& cell, const std::string& where) {
  const TrainOptions& train = cell.options.train;
  const auto refuse = [&](const std::string& why) {
    throw ConfigError(fmt::format("{}: {}: {}", where, cell.label, why));
  };
  if (!train.ends_by(Protocol::matched_loss)) refuse("what is predicted are updates to a target: protocol B");
  if (train.batch_size <= kLargestSmallBatch)
    refuse(fmt::format("batch_size = {}: a forecast is of sizes above {}", train.batch_size,
                       kLargestSmallBatch));
  if (largest_batch(train) != train.batch_size) refuse("batch_milestones: one size per run");
  if (train.branch.exists()) refuse("branch.from: updates are predicted from the beginning of a run");
  const ScheduleOptions& schedule = cell.options.schedule;
  if (schedule.scaling_rule != "none" || schedule.effective_rate)
    refuse("scaling_rule or effective_rate: the rates of the trials have to be those used");
  if (schedule.beta2_rule != "none" || schedule.decay_rule != "none")
    refuse("beta2_rule or decay_rule: the optimiser has to be the one of the small batches");
}

void require_two_experiments(int64_t a, int64_t b, int64_t examples, const std::string& where) {
  if (std::min(a, b) >= examples)
    throw ConfigError(
        fmt::format("{}: batch sizes {} and {} are one experiment with {} training examples: "
                    "the full batch counts once",
                    where, a, b, examples));
}

std::vector<double> factors_of(const RunOptions& options, int64_t updates, int64_t examples) {
  const RunShape shape{options.train.batch_size, updates,
                       static_cast<double>(examples) / static_cast<double>(options.train.batch_size)};
  const RateSchedule schedule(options.schedule, options.train.learning_rate, /*gain=*/1, shape);
  std::vector<double> factors;
  for (int64_t t = 0; t < updates; ++t) factors.push_back(schedule.factor(t));
  return factors;
}

TestCell new_cell(const Cell& cell, int64_t examples) {
  TestCell made;
  made.optimizer = cell.options.optimizer;
  made.setting = setting_text(cell.options);
  made.arm = arm_text(cell.options);
  made.batch = cell.options.train.batch_size;
  made.examples = examples;
  made.target = cell.options.train.target_loss;
  Cell to_its_cap = cell;
  to_its_cap.expected_gradients = 0;
  const CellWork work = plan_work(to_its_cap, {examples, 0, 0}, /*with_probes=*/false);
  made.gradients = work.images_per_update;
  made.factors = factors_of(cell.options, work.updates, examples);
  return made;
}

}  // namespace

double TestCell::updates_of(double effective) const {
  double sum = 0;
  for (size_t t = 0; t < factors.size(); ++t) {
    sum += factors[t];
    if (sum >= effective * (1 - 1e-12)) return static_cast<double>(t + 1);
  }
  return std::numeric_limits<double>::infinity();
}

std::vector<TestCell> test_cells(const Study& study, int64_t examples, const std::string& where) {
  std::vector<TestCell> cells;
  std::vector<std::string> texts;  // by cell
  for (const Cell& cell : expand(study)) {
    require_test_cell(cell, where);
    const int64_t batch = cell.options.train.batch_size;
    const std::string text = cell_text(cell.options);
    size_t i = 0;
    for (; i < cells.size(); ++i) {
      if (cells[i].optimizer != cell.options.optimizer) continue;
      if (cells[i].batch == batch) break;
      require_two_experiments(cells[i].batch, batch, examples, where);
    }
    if (i == cells.size()) {
      cells.push_back(new_cell(cell, examples));
      texts.push_back(text);
    }
    if (text != texts[i])
      throw ConfigError(fmt::format("{}: {}: trials of one cell differ in {}", where, cell.label,
                                    compared_difference(texts[i], text)));
    std::vector<double>& rates = cells[i].rates;
    const double rate = cell.options.train.learning_rate;
    if (std::find(rates.begin(), rates.end(), rate) == rates.end()) rates.push_back(rate);
  }
  return cells;
}

}  // namespace basin
