#include "trainers/trainer.h"

#include "core/dtype.h"
#include "core/interrupt.h"
#include "core/math/tensor_norms.h"
#include "data/network_inputs.h"
#include "data/resident.h"

namespace basin {
namespace {

// NaN without the sign that it has on some machines.
std::string shown(double loss) { return std::isnan(loss) ? "nan" : fmt::format("{:.6g}", loss); }

void append_average(Summary& summary, const EvaluationRecord& scores) {
  summary.emplace_back("average_train_loss", scores.train_loss);
  summary.emplace_back("average_train_acc", scores.train_accuracy);
  summary.emplace_back("average_validation_loss", scores.validation_loss);
  summary.emplace_back("average_validation_acc", scores.validation_accuracy);
  summary.emplace_back("average_test_loss", scores.test_loss);
  summary.emplace_back("average_test_acc", scores.test_accuracy);
}

// What a network starts from besides its seed: the first images of the training split, as they are.
void prepare(Model& model, const EvaluationSetup& setup) {
  const int64_t images = std::min(model.images_to_prepare(), setup.data.train.size());
  if (images == 0) return;
  const at::Tensor index = at::arange(images, at::kLong);
  model.prepare(network_inputs(setup.data, setup.data.train, index, setup.dtype, setup.device).to(at::kCPU));
}

std::vector<at::Tensor> copies(const std::vector<ParameterInfo>& parameters) {
  std::vector<at::Tensor> result;
  for (const ParameterInfo& parameter : parameters) result.push_back(parameter.tensor.detach().clone());
  return result;
}

}  // namespace

Trainer::Trainer(TrainSetup setup)
    : setup_(std::move(setup)),
      plan_(plan_batches(setup_.train, setup_.data_options, setup_.model->has_dropout(),
                         setup_.model->has_batch_statistics(), setup_.optimizer.overlap())),
      checks_(setup_.train),
      data_(on_device(setup_.data, setup_.device)),
      evaluation_{data_, loss_kind(setup_.train.loss), setup_.train.micro_batch,
                  scalar_type(setup_.train.dtype), setup_.device},
      views_(views_named(setup_.train.test_time_augmentation, setup_.data.test)),
      execution_(gradient_execution(setup_.cuda_graphs, setup_.device, *setup_.model)),
      gradient_(setup_.model, data_, setup_.data_options, setup_.train, plan_, evaluation_.dtype,
                setup_.device, execution_),
      stream_(static_cast<uint64_t>(setup_.train.seed), setup_.data.train.size()),
      batches_(setup_.train, plan_, setup_.data.train.size()),
      total_updates_(batches_.updates()),
      rates_(setup_.schedule, setup_.train.learning_rate, setup_.optimizer.gain(),
             run_shape(setup_.train, batches_, setup_.data.train.size())),
      start_(copies(setup_.model->parameter_table())),
      stop_requested_([] { return interrupt_signal() != 0; }) {
  state_.next_check = checks_.next_check(0, false);
  state_.next_evaluation = setup_.train.evaluate_every;
  if (setup_.train.lookahead_every > 0)
    lookahead_.emplace(setup_.model->parameter_table(), setup_.train, total_updates_);
  if (setup_.train.weight_average > 0)
    average_.emplace(setup_.model->parameter_table(), setup_.train.weight_average);
  noise_ =
      make_noise_gauge(setup_.train, setup_.data_options, plan_, *setup_.model, setup_.data.train.size());
}

TrainResult Trainer::run() {
  clock_ = last_checkpoint_ = Clock::now();
  if (state_.update == 0) {
    prepare(*setup_.model, evaluation_);
    refresh_running_statistics(*setup_.model, evaluation_, plan_.ghost_batch);
    checkpoint("start");
  }
  while (!ended()) {
    if (stop_requested_()) return interrupt();
    take_update();
    evaluate_if_due();
    keep_milestone_if_due();
    checkpoint_if_due();
  }
  return finish();
}

void Trainer::take_update() {
  const Clock::time_point start = Clock::now();
  const int64_t batch_size = batches_.batch_size(state_.update);
  const int64_t gradients_again = learn_overlap(batch_size);
  const std::vector<Batch> groups = batch_groups(stream_, state_.examples, batch_size, plan_);
  const double loss = gradient_.compute(groups, {state_.update, state_.examples},
                                        noise_ && noise_->measures(state_.update + 1));
  if (is_divergence(loss)) {
    diverge(fmt::format("batch loss {} at update {}", shown(loss), state_.update + 1));
    return;
  }
  if (noise_) noise_->add(state_.update + 1, groups.front(), gradient_);
  const ClippedGradients clipped =
      clip_gradients(setup_.model->parameter_table(), setup_.train.clip_gradient);
  if (plan_.overlap > 0) setup_.optimizer.set_overlap(overlap_gradient_, gradient_.of_last_group());
  setup_.optimizer.set_learning_rate(rates_.at(state_.update));
  setup_.optimizer.step();
  state_.update += 1;
  state_.examples += batch_size;
  state_.gradients += gradients_of(groups, plan_) + gradients_again;
  if (lookahead_) lookahead_->synchronise(state_.update);
  if (average_) average_->add(state_.update);
  state_.update_seconds += seconds_since(start);
  report_update(loss, batch_size, clipped);
}

/// For methods with overlap: the gradient of the examples that the last batch ended with, at the weights of now; what it
/// cost in image gradients. The stream's order stays that of every other method.
int64_t Trainer::learn_overlap(int64_t batch_size) {
  overlap_gradient_.clear();
  const int64_t shared = overlap_of(plan_, batch_size);
  if (shared == 0 || state_.update == 0) return 0;
  const int64_t start = state_.examples - shared;
  const std::vector<Batch> again{stream_.slice(start, shared, plan_.merge_duplicates)};
  gradient_.compute(again, {state_.update, start});  // no dropout: its masks would be those of another update
  overlap_gradient_ = gradient_.of_last_group();
  return gradients_of(again, plan_);
}

void Trainer::report_update(double loss, int64_t batch_size, const ClippedGradients& clipped) {
  if (observers_.empty()) return;
  advance_clock();
  unclipped_ = setup_.optimizer.last_step();
  for (size_t i = 0; i < clipped.norms.size(); ++i) unclipped_[i].gradient_norm = clipped.norms[i];
  UpdateRecord record;
  record.update = state_.update;
  record.examples = state_.examples;
  record.gradients = state_.gradients;
  record.batch_size = batch_size;
  record.loss = loss;
  record.clip_factor = clipped.factor;
  record.learning_rate = setup_.optimizer.learning_rate();
  double weight = 0, gradient = 0, update = 0;
  for (const ParameterStep& step : unclipped_) {
    weight += step.weight_norm * step.weight_norm;
    gradient += step.gradient_norm * step.gradient_norm;
    update += step.update_norm * step.update_norm;
  }
  record.weight_norm = std::sqrt(weight);
  record.gradient_norm = std::sqrt(gradient);
  record.update_norm = std::sqrt(update);
  record.distance_from_start = distance_from_start();
  record.parameters = &unclipped_;
  if (noise_ && !noise_->row().empty()) record.noise = &noise_->row();
  record.seconds = state_.seconds;
  for (TrainObserver* observer : observers_) observer->on_update(record);
}

void Trainer::evaluate_if_due() {
  if (state_.ending == "diverged") return;
  const bool at_end = state_.update >= total_updates_;
  const bool check = checks_.active() && (state_.examples >= state_.next_check || at_end);
  const bool evaluation = setup_.train.evaluate_every > 0 && state_.examples >= state_.next_evaluation;
  if (check) apply_check(train_score().loss);
  if (evaluation) state_.next_evaluation = state_.examples + setup_.train.evaluate_every;
  if (ended() || !(check || evaluation)) return;  // finish() evaluates everything at the last update

  EvaluationRecord record;
  if (evaluation) {
    record = evaluate_all(nullptr);
  } else {
    const SplitScore train = train_score();
    advance_clock();
    record.update = state_.update;
    record.examples = state_.examples;
    record.gradients = state_.gradients;
    record.train_loss = train.loss;
    record.train_accuracy = train.accuracy;
    record.seconds = state_.seconds;
  }
  for (TrainObserver* observer : observers_) observer->on_evaluation(record);
}

void Trainer::apply_check(double train_loss) {
  if (is_divergence(train_loss)) {
    diverge(fmt::format("training loss {} at update {}", shown(train_loss), state_.update));
    return;
  }
  state_.near_target = state_.near_target || checks_.near_target(train_loss);
  state_.next_check = checks_.next_check(state_.examples, state_.near_target);
  pass_levels(train_loss);
  if (!checks_.reached(train_loss)) return;
  state_.ending = "target";
  state_.steps_to_target = static_cast<double>(state_.update);
  state_.overshot = checks_.overshot(train_loss);
  event("info",
        fmt::format("training loss {:.6g} reached the target at update {}", train_loss, state_.update));
}

void Trainer::pass_levels(double train_loss) {
  const std::vector<double>& levels = checks_.levels();
  while (state_.levels_passed < static_cast<int64_t>(levels.size())) {
    const double level = levels[static_cast<size_t>(state_.levels_passed)];
    if (train_loss > level) return;
    state_.levels_passed += 1;
    level_ = level;
    checkpoint(CheckRule::level_label(level));
    level_.reset();
    event("info",
          fmt::format("loss level {:g} passed with {:.6g} at update {}", level, train_loss, state_.update));
  }
}

void Trainer::keep_milestone_if_due() {
  const int64_t every = setup_.train.checkpoint_every;
  if (every == 0 || state_.update % every != 0 || state_.ending == "diverged") return;
  refresh_running_statistics(*setup_.model, evaluation_, plan_.ghost_batch);
  checkpoint(fmt::format("u{:06d}", state_.update));
}

void Trainer::checkpoint_if_due() {
  if (ended()) return;
  if (seconds_since(last_checkpoint_) < setup_.train.checkpoint_seconds) return;
  last_checkpoint_ = Clock::now();
  checkpoint("latest");
}

TrainResult Trainer::interrupt() {
  checkpoint("latest");
  return {
      "interrupted", fmt::format("stopped after update {} of {}", state_.update, total_updates_), {}, {}, {}};
}

TrainResult Trainer::finish() {
  TrainResult result;
  EvaluationRecord scores;
  if (state_.ending != "diverged") {
    scores = evaluate_all(&result.test, &result.validation);
    // The last update's effect shows here alone.
    if (is_divergence(scores.train_loss)) {
      diverge(
          fmt::format("training loss {} after the last update, {}", shown(scores.train_loss), state_.update));
    }
  }
  if (state_.ending == "diverged") scores = {};
  scores.update = state_.update;
  scores.examples = state_.examples;
  scores.gradients = state_.gradients;
  advance_clock();
  scores.seconds = state_.seconds;
  for (TrainObserver* observer : observers_) observer->on_evaluation(scores);
  checkpoint("end");
  result.summary = summarise(scores);
  if (views_ != Views::one) {
    const SplitScore averaged = state_.ending == "diverged" ? SplitScore() : evaluate_views();
    result.summary.emplace_back("tta_test_loss", averaged.loss);
    result.summary.emplace_back("tta_test_acc", averaged.accuracy);
  }
  if (average_)
    append_average(result.summary, state_.ending == "diverged" ? EvaluationRecord() : evaluate_average());
  result.status = "finished";
  if (state_.ending == "diverged") {
    result.status = "diverged";
    result.message = state_.message;
    result.validation = result.test = {};
  } else if (checks_.matched_loss() && state_.ending != "target") {
    result.status = "target_not_reached";
    result.message = fmt::format("training loss {:.6g} at the cap of {} gradients, target {:g}",
                                 scores.train_loss, setup_.train.max_gradients, setup_.train.target_loss);
  }
  return result;
}

EvaluationRecord Trainer::evaluate_all(ExampleOutcomes* test_outcomes, ExampleOutcomes* validation_outcomes) {
  const SplitScore train = train_score();
  const SplitScore validation = evaluate(*setup_.model, evaluation_, data_.validation, validation_outcomes);
  const SplitScore held_out = evaluate(*setup_.model, evaluation_, data_.test, test_outcomes);
  advance_clock();
  return {state_.update,   state_.examples,     state_.gradients, train.loss,        train.accuracy,
          validation.loss, validation.accuracy, held_out.loss,    held_out.accuracy, state_.seconds};
}

SplitScore Trainer::evaluate_views() {
  EvaluationSetup setup = evaluation_;
  setup.views = views_;
  return evaluate(*setup_.model, setup, data_.test);
}

EvaluationRecord Trainer::evaluate_average() {
  const AveragedModel averaged(*average_, *setup_.model);
  known_score_.reset();  // it is of the run's own weights
  const EvaluationRecord scores = evaluate_all(nullptr);
  checkpoint("average");
  known_score_.reset();
  return scores;
}

SplitScore Trainer::train_score() {
  if (!known_score_ || known_score_->first != state_.update) {
    refresh_running_statistics(*setup_.model, evaluation_, plan_.ghost_batch);
    known_score_ = {state_.update, evaluate(*setup_.model, evaluation_, data_.train)};
  }
  return known_score_->second;
}

bool Trainer::is_divergence(double loss) const {
  return !std::isfinite(loss) || loss > setup_.train.divergence_loss;
}

void Trainer::diverge(const std::string& message) {
  state_.ending = "diverged";
  state_.message = message;
  event("warning", "diverged: " + message);
}

Summary Trainer::summarise(const EvaluationRecord& scores) const {
  const double n = static_cast<double>(setup_.data.train.size());
  const double epochs = static_cast<double>(state_.examples) / n;
  const bool by_epochs = setup_.train.protocol == "A-epochs";
  double weight = 0;
  for (const ParameterInfo& parameter : setup_.model->parameter_table())
    weight += squared_norm(parameter.tensor);
  return {
      {"updates", state_.update},
      {"planned_updates", total_updates_},
      {"epochs", epochs},
      {"epochs_over_budget", by_epochs ? epochs - setup_.train.epochs * epoch_stretch(setup_.train) : NAN},
      {"examples", state_.examples},
      {"gradients", state_.gradients},
      {"train_loss", scores.train_loss},
      {"train_acc", scores.train_accuracy},
      {"validation_loss", scores.validation_loss},
      {"validation_acc", scores.validation_accuracy},
      {"test_loss", scores.test_loss},
      {"test_acc", scores.test_accuracy},
      {"weight_norm", std::sqrt(weight)},
      {"distance_from_start", distance_from_start()},
      {"steps_to_target", state_.steps_to_target},
      {"overshot", state_.overshot},
      {"seconds", state_.seconds},
      {"update_seconds", state_.update_seconds},
      {"images_per_second",
       state_.update_seconds > 0 ? static_cast<double>(state_.gradients) / state_.update_seconds : NAN}};
}

double Trainer::distance_from_start() const {
  std::vector<at::Tensor> weights;
  for (const ParameterInfo& parameter : setup_.model->parameter_table()) weights.push_back(parameter.tensor);
  return std::sqrt(squared_distance(weights, start_));
}

void Trainer::checkpoint(const std::string& label) {
  advance_clock();
  for (TrainObserver* observer : observers_) observer->on_checkpoint(label);
}

void Trainer::event(const std::string& level, const std::string& text) {
  for (TrainObserver* observer : observers_) observer->on_event(level, text);
}

void Trainer::advance_clock() {
  const Clock::time_point now = Clock::now();
  state_.seconds +=
      std::chrono::duration<double>(now - clock_).count();  // what lies between two calls, all of it
  clock_ = now;
}

}  // namespace basin
