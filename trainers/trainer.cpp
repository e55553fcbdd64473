#include "trainers/trainer.h"

#include "core/dtype.h"
#include "core/interrupt.h"
#include "core/math/tensor_norms.h"
#include "data/network_inputs.h"
#include "data/resident.h"
#include "optim/kernels/multi_tensor.h"
#include "ranks/worker_links.h"
#include "trainers/flat_weights.h"
#include "trainers/tables.h"

namespace basin {
namespace {

// NaN without the sign that it has on some machines.
std::string shown(double loss) { return std::isnan(loss) ? "nan" : fmt::format("{:.6g}", loss); }

// What a network starts from besides its seed: the first images of the training split, as they are.
void prepare(Model& model, const EvaluationSetup& setup) {
  const int64_t images = std::min(model.images_to_prepare(), setup.data.train.size());
  if (images == 0) return;
  const at::Tensor index = at::arange(images, at::kLong);
  model.prepare(network_inputs(setup.data, setup.data.train, index, setup.dtype, setup.device).to(at::kCPU));
}

// Ranks are to have a micro-batch each, all of one size where that is possible.
BatchPlan shared_plan(BatchPlan plan, bool has_batch_statistics, const RankGroup& ranks) {
  const int64_t n = ranks.size(), units = most_ranks(plan, has_batch_statistics);
  if (n == 1) return plan;
  const int64_t unit = has_batch_statistics ? plan.ghost_batch : 1;
  if (units < n)
    throw ConfigError(fmt::format(
        "{} can't be shared by {} ranks",
        has_batch_statistics ? fmt::format("{} ghost batch{} of {}", units, units == 1 ? "" : "es", unit)
                             : fmt::format("a batch of {}", units),
        n));
  plan.micro_batch = unit * ranks.even_piece(units, std::max<int64_t>(1, plan.micro_batch / unit));
  return plan;
}

std::vector<at::Tensor> copies(const std::vector<ParameterInfo>& parameters) {
  std::vector<at::Tensor> result;
  for (const ParameterInfo& parameter : parameters) result.push_back(parameter.tensor.detach().clone());
  return result;
}

}  // namespace

Trainer::Trainer(TrainSetup setup)
    : setup_(std::move(setup)),
      plan_(shared_plan(plan_batches(setup_.train, setup_.data_options, setup_.model->has_dropout(),
                                     setup_.model->has_batch_statistics(), setup_.optimizer.overlap()),
                        setup_.model->has_batch_statistics(), setup_.ranks)),
      checks_(setup_.train),
      data_(on_device(setup_.data, setup_.device)),
      evaluation_{data_,
                  loss_kind(setup_.train.loss),
                  setup_.train.micro_batch,
                  scalar_type(setup_.train.dtype),
                  setup_.device,
                  Views::one,
                  setup_.ranks},
      execution_(gradient_execution(setup_.cuda_graphs, setup_.device, *setup_.model)),
      gradient_(setup_.model, data_, setup_.data_options, setup_.train, plan_, evaluation_.dtype,
                setup_.device, execution_, setup_.ranks),
      stream_(static_cast<uint64_t>(setup_.train.seed), setup_.data.train.size()),
      batches_(setup_.train, plan_, setup_.data.train.size()),
      branch_(setup_.branch ? std::optional(setup_.branch->point) : std::nullopt),
      course_(setup_.train, batches_, branch_ ? &*branch_ : nullptr,
              setup_.branch ? setup_.branch->anneal_updates : 0),
      total_updates_(course_.total()),
      norms_every_(norms_every(setup_.model->parameter_count(), layers_every(setup_.train, total_updates_))),
      rates_(setup_.schedule, setup_.train.learning_rate, setup_.optimizer.gain(),
             run_shape(setup_.train, batches_, setup_.data.train.size())),
      start_((take_first_ranks(setup_.model->parameter_table()), copies(setup_.model->parameter_table()))),
      stop_requested_([] { return interrupt_signal() != 0; }) {
  progress_.next_check = checks_.next_check(0, false);
  progress_.next_evaluation = setup_.train.evaluate_every;
  const std::shared_ptr<const Checkpoint> parent = setup_.branch ? setup_.branch->parent : nullptr;
  if (parent)
    restore_model(*setup_.model, *parent);  // a hook that the parent had not begins with these weights
  make_hooks();
  if (parent) begin_branch(*parent);
  if (parent) setup_.branch->parent.reset();  // it is as large as the model and its optimiser
  if (const RankGroup& ranks = setup_.ranks; !ranks.is_alone())
    setup_.optimizer.share_sums(
        {ranks.rank(), ranks.size(), [&ranks](double here) { return ranks.sum(here); }});
}

void Trainer::make_hooks() {
  setup_.train.hooks.check_updates(total_updates_);
  const HookSetup setup{setup_.train,
                        setup_.data_options,
                        setup_.data,
                        plan_,
                        *setup_.model,
                        setup_.optimizer,
                        gradient_,
                        stream_,
                        total_updates_,
                        course_.first(),
                        branch_ ? branch_->examples - branch_->stream_start : 0,
                        [this](int64_t update) { return batch_size_of(update); },
                        rates_.peak(),
                        *this,
                        setup_.workers,
                        setup_.is_worker,
                        setup_.order};
  for (const auto& options : setup_.train.hooks.all()) {
    std::unique_ptr<UpdateHook> hook = options->make(setup);
    if (!hook) continue;
    if (GradientRule* rule = hook->gradient_rule()) gradient_.add_rule(*rule);
    hooks_.push_back(std::move(hook));
  }
}

TrainResult Trainer::run() {
  clock_ = last_checkpoint_ = Clock::now();
  begin();
  while (!ended()) {
    if (setup_.ranks.any(stop_requested_())) return interrupt();
    take_update();
    evaluate_if_due();
    if (!diverged())
      for (const auto& hook : hooks_) hook->between_updates();
    checkpoint_if_due();
  }
  return finish();
}

// Another processor may have drawn the first weights with other roundings.
void Trainer::take_first_ranks(const std::vector<ParameterInfo>& parameters) const {
  for (const ParameterInfo& parameter : parameters) setup_.ranks.broadcast(parameter.tensor);
}

void Trainer::check_replicas() const {
  if (setup_.ranks.is_alone()) return;
  double weight = 0;
  for (const ParameterInfo& parameter : setup_.model->parameter_table())
    weight += squared_norm(parameter.tensor);
  const at::Tensor first = at::full({}, weight, at::kDouble);
  setup_.ranks.broadcast(first);
  const bool other =
      first.item<double>() != weight && !(std::isnan(weight) && std::isnan(first.item<double>()));
  if (setup_.ranks.any(other))
    throw NumericError(
        fmt::format("the ranks' weights are no longer the same at update {}{}", progress_.update,
                    other ? fmt::format(": {} differs", setup_.ranks.name_of(setup_.ranks.rank())) : ""));
}

void Trainer::begin() {
  if (progress_.update != course_.first()) return;
  if (!branch_) {
    prepare(*setup_.model, evaluation_);
    for (const auto& [name, tensor] : setup_.model->buffer_table()) setup_.ranks.broadcast(tensor);
    refresh_statistics();
  } else if (std::isnan(branch_->train_loss)) {
    const EvaluationRecord record = evaluate_all(nullptr);
    branch_->train_loss = record.train_loss;
    for (TrainObserver* observer : observers_) observer->on_evaluation(record);
  } else {
    return;  // stopped before its first update
  }
  keep_checkpoint("start");
}

void Trainer::take_update() {
  const Clock::time_point start = Clock::now();
  const RankTraffic before = setup_.ranks.traffic();
  OngoingUpdate update;
  update.number = progress_.update + 1;
  update.start = progress_.examples - (branch_ ? branch_->stream_start : 0);
  update.draw = progress_.update - (branch_ ? branch_->draws_start : 0);
  update.batch_size = batch_size_of(progress_.update);
  const double loss = compute_gradient(update);
  if (is_divergence(loss)) {
    setup_.optimizer.leave_gradient_point();
    diverge(fmt::format("batch loss {} at update {}", shown(loss), update.number));
    return;
  }
  update.loss = loss;
  for (const auto& hook : hooks_) hook->after_gradient(update);
  for (const auto& hook : hooks_) hook->change_gradient(update);
  for (const auto& hook : hooks_) hook->before_step(update);
  setup_.optimizer.set_learning_rate(rate_of(progress_.update));
  update.takes_norms = takes_norms(update.number);
  setup_.optimizer.take_norms(update.takes_norms);
  setup_.optimizer.step();
  progress_.update += 1;
  progress_.examples += update.batch_size;
  progress_.gradients += gradients_of(update.groups, plan_) + update.more_gradients;
  for (const auto& hook : hooks_) hook->after_update(update.number);
  const double seconds = seconds_since(start);
  progress_.update_seconds += seconds;
  shared_.traffic += setup_.ranks.traffic().since(before);
  shared_.seconds += seconds;
  shared_.updates += 1;
  report_update(update, loss);
}

bool Trainer::takes_norms(int64_t update) const {
  return records() && (has_layers_row(update, norms_every_) || update == total_updates_);
}

/// Returns the batch's mean loss.
double Trainer::compute_gradient(OngoingUpdate& update) {
  setup_.optimizer.go_to_gradient_point();
  bool measured = false;
  for (const auto& hook : hooks_) {
    hook->before_gradient(update);
    measured = measured || hook->measures(update.number);
  }
  if (update.groups.empty()) update.groups = batch_groups(stream_, update.start, update.batch_size, plan_);
  return gradient_.compute(update.groups, {update.draw, update.start}, measured);
}

void Trainer::work_for(ServerLink& server) {
  if (!branch_) prepare(*setup_.model, evaluation_);
  std::vector<at::Tensor> weights;
  for (const ParameterInfo& parameter : setup_.model->parameter_table()) weights.push_back(parameter.tensor);
  while (const std::optional<WorkOrder> order = server.pull()) {
    take_from_flat(server.weights(), weights);
    const std::vector<Batch> groups = batch_groups(stream_, order->start, setup_.train.batch_size, plan_);
    const double loss = gradient_.compute(groups, {order->draw, order->start});
    server.push(loss, flat_on_host(gradient_.gradients()));
  }
}

void Trainer::report_update(const OngoingUpdate& update, double loss) {
  if (!records()) return;
  advance_clock();
  steps_ = setup_.optimizer.last_step();
  if (update.norms)
    for (size_t i = 0; i < steps_.size(); ++i) steps_[i].gradient_norm = update.norms->at(i);
  UpdateRecord record;
  record.update = progress_.update;
  record.examples = progress_.examples;
  record.gradients = progress_.gradients;
  record.batch_size = update.batch_size;
  record.loss = loss;
  record.learning_rate = setup_.optimizer.learning_rate();
  double weight = 0, gradient = 0, change = 0;
  for (const ParameterStep& step : steps_) {
    weight += step.weight_norm * step.weight_norm;
    gradient += step.gradient_norm * step.gradient_norm;
    change += step.update_norm * step.update_norm;
  }
  record.weight_norm = std::sqrt(weight);
  record.gradient_norm = std::sqrt(gradient);
  record.update_norm = std::sqrt(change);
  if (update.takes_norms) {
    record.distance_from_start = distance_from_start();
    record.parameters = &steps_;
  }
  for (const auto& hook : hooks_) {
    hook->append_train_values(record.hook_values);
    if (hook->row().empty()) continue;
    if (const std::optional<Table> table = hook->table())
      record.hook_rows.push_back({table->name, hook->row()});
  }
  record.seconds = progress_.seconds;
  for (TrainObserver* observer : observers_) observer->on_update(record);
}

void Trainer::evaluate_if_due() {
  if (diverged()) return;
  const bool at_end = progress_.update >= total_updates_;
  const bool check =
      checks_.pending(progress_.levels_passed) && (progress_.examples >= progress_.next_check || at_end);
  const bool evaluation = setup_.train.evaluate_every > 0 && progress_.examples >= progress_.next_evaluation;
  if (check) apply_check(train_score().loss);
  if (evaluation) progress_.next_evaluation = progress_.examples + setup_.train.evaluate_every;
  if (ended() || !(check || evaluation)) return;  // finish() evaluates everything at the last update

  EvaluationRecord record;
  if (evaluation) {
    record = evaluate_all(nullptr);
  } else {
    const SplitScore train = train_score();
    advance_clock();
    record.update = progress_.update;
    record.examples = progress_.examples;
    record.gradients = progress_.gradients;
    record.train_loss = train.loss;
    record.train_accuracy = train.accuracy;
    record.seconds = progress_.seconds;
  }
  for (TrainObserver* observer : observers_) observer->on_evaluation(record);
}

void Trainer::apply_check(double train_loss) {
  if (is_divergence(train_loss)) {
    diverge(fmt::format("training loss {} at update {}", shown(train_loss), progress_.update));
    return;
  }
  progress_.near_target = progress_.near_target || checks_.near_target(train_loss);
  progress_.next_check = checks_.next_check(progress_.examples, progress_.near_target);
  for (const auto& hook : hooks_) hook->after_check(train_loss);
  if (!checks_.reached(train_loss) || course_.anneals()) return;  // an annealing goes to its end
  progress_.ending = Ending::target;
  progress_.steps_to_target = static_cast<double>(progress_.update);
  progress_.overshot = checks_.overshot(train_loss);
  event("info",
        fmt::format("training loss {:.6g} reached the target at update {}", train_loss, progress_.update));
}

void Trainer::checkpoint_if_due() {
  if (ended()) return;
  if (seconds_since(last_checkpoint_) < setup_.train.checkpoint_seconds) return;
  last_checkpoint_ = Clock::now();
  keep_checkpoint("latest");
}

TrainResult Trainer::interrupt() {
  keep_checkpoint("latest");
  return {RunState::interrupted,
          fmt::format("stopped after update {} of {}", progress_.update, total_updates_),
          {},
          {},
          {}};
}

TrainResult Trainer::finish() {
  TrainResult result;
  EvaluationRecord scores;
  if (!diverged()) {
    scores = evaluate_all(&result.test, &result.validation);
    // The last update's effect shows here alone.
    if (is_divergence(scores.train_loss)) {
      diverge(fmt::format("training loss {} after the last update, {}", shown(scores.train_loss),
                          progress_.update));
    }
  }
  if (diverged()) scores = {};
  scores.update = progress_.update;
  scores.examples = progress_.examples;
  scores.gradients = progress_.gradients;
  advance_clock();
  scores.seconds = progress_.seconds;
  for (TrainObserver* observer : observers_) observer->on_evaluation(scores);
  keep_checkpoint("end");
  result.summary = summarise(scores);
  for (const auto& hook : hooks_) hook->at_end(result.summary, diverged());
  for (const auto& hook : hooks_) hook->after_end(result.summary, diverged());
  if (diverged()) {
    result.status = RunState::diverged;
    result.message = progress_.message;
    result.validation = result.test = {};
  } else if (checks_.matched_loss() && progress_.ending != Ending::target && !course_.anneals()) {
    result.status = RunState::target_not_reached;
    const BranchOptions& branch = setup_.train.branch;
    const std::string cap = branch_ && branch.updates > 0
                                ? fmt::format("after branch.updates = {}", branch.updates)
                                : fmt::format("at the cap of {} gradients", setup_.train.max_gradients);
    result.message =
        fmt::format("training loss {:.6g} {}, target {:g}", scores.train_loss, cap, setup_.train.target_loss);
  }
  return result;
}

EvaluationRecord Trainer::evaluate_all(ExampleOutcomes* test_outcomes, ExampleOutcomes* validation_outcomes) {
  const SplitScore train = train_score();
  const SplitScore validation = evaluate(*setup_.model, evaluation_, data_.validation, validation_outcomes);
  const SplitScore held_out = evaluate(*setup_.model, evaluation_, data_.test, test_outcomes);
  advance_clock();
  return {progress_.update, progress_.examples,  progress_.gradients, train.loss,        train.accuracy,
          validation.loss,  validation.accuracy, held_out.loss,       held_out.accuracy, progress_.seconds};
}

SplitScore Trainer::score_test(Views views) {
  EvaluationSetup setup = evaluation_;
  setup.views = views;
  return evaluate(*setup_.model, setup, data_.test);
}

void Trainer::keep_test_outcomes(const std::string& label) {
  if (!records()) return;
  ExampleOutcomes outcomes;
  evaluate(*setup_.model, evaluation_, data_.test, &outcomes);
  if (outcomes.loss.empty()) return;
  for (TrainObserver* observer : observers_) observer->on_outcomes("test@" + label, outcomes);
}

EvaluationRecord Trainer::score_other_weights(const std::string& label) {
  known_score_.reset();  // it is of the run's own weights
  const EvaluationRecord scores = evaluate_all(nullptr);
  keep_checkpoint(label);
  known_score_.reset();
  return scores;
}

SplitScore Trainer::train_score() {
  if (!known_score_ || known_score_->first != progress_.update) {
    check_replicas();
    refresh_statistics();
    known_score_ = {progress_.update, evaluate(*setup_.model, evaluation_, data_.train)};
  }
  return known_score_->second;
}

bool Trainer::is_divergence(double loss) const {
  return !std::isfinite(loss) || loss > setup_.train.divergence_loss;
}

void Trainer::diverge(const std::string& message) {
  progress_.ending = Ending::diverged;
  progress_.message = message;
  event("warning", "diverged: " + message);
}

Summary Trainer::summarise(const EvaluationRecord& scores) const {
  const double n = static_cast<double>(setup_.data.train.size());
  const double epochs = static_cast<double>(progress_.examples) / n;
  const bool by_epochs = setup_.train.ends_by(Protocol::epochs) && !course_.anneals() &&
                         !(branch_ && setup_.train.branch.updates > 0);
  const int64_t own_gradients = progress_.gradients - (branch_ ? branch_->gradients : 0);
  double weight = 0;
  for (const ParameterInfo& parameter : setup_.model->parameter_table())
    weight += squared_norm(parameter.tensor);
  Summary summary = {
      {"updates", progress_.update},
      {"planned_updates", total_updates_},
      {"epochs", epochs},
      {"epochs_over_budget", by_epochs ? epochs - setup_.train.epochs * epoch_stretch(setup_.train) : NAN},
      {"examples", progress_.examples},
      {"gradients", progress_.gradients},
      {"train_loss", scores.train_loss},
      {"train_acc", scores.train_accuracy},
      {"validation_loss", scores.validation_loss},
      {"validation_acc", scores.validation_accuracy},
      {"test_loss", scores.test_loss},
      {"test_acc", scores.test_accuracy},
      {"weight_norm", std::sqrt(weight)},
      {"distance_from_start", distance_from_start()},
      {"steps_to_target", progress_.steps_to_target},
      {"overshot", progress_.overshot},
      {"seconds", progress_.seconds},
      {"update_seconds", progress_.update_seconds},
      {"images_per_second",
       progress_.update_seconds > 0 ? static_cast<double>(own_gradients) / progress_.update_seconds : NAN}};
  if (!setup_.ranks.is_alone() && shared_.updates > 0) {
    const auto bytes = static_cast<double>(shared_.traffic.bytes);
    summary.insert(summary.end(), {{"rank_bytes_per_update", bytes / static_cast<double>(shared_.updates)},
                                   {"rank_wait_share", shared_.traffic.waited / shared_.seconds}});
  }
  if (!branch_) return summary;
  summary.insert(summary.end(), {{"branch_update", branch_->update},
                                 {"branch_examples", branch_->examples},
                                 {"branch_gradients", branch_->gradients},
                                 {"branch_train_loss", branch_->train_loss}});
  return summary;
}

std::vector<Column> Trainer::hook_columns() const {
  std::vector<Column> columns;
  for (const auto& hook : hooks_)
    for (const Column& column : hook->train_columns()) columns.push_back(column);
  return columns;
}

std::vector<Table> Trainer::hook_tables() const {
  std::vector<Table> tables;
  for (const auto& hook : hooks_)
    if (const std::optional<Table> table = hook->table()) tables.push_back(*table);
  return tables;
}

double Trainer::distance_from_start() const {
  if (branch_ && !branch_->same_start) return NAN;  // the chain began at weights that this run doesn't know
  std::vector<at::Tensor> weights;
  for (const ParameterInfo& parameter : setup_.model->parameter_table()) weights.push_back(parameter.tensor);
  return std::sqrt(squared_distance(weights, start_, distance_tables_));
}

void Trainer::refresh_statistics() {
  refresh_running_statistics(*setup_.model, evaluation_, plan_.ghost_batch);
}

void Trainer::keep_checkpoint(const std::string& label) {
  advance_clock();
  for (TrainObserver* observer : observers_) observer->on_checkpoint(label);
}

void Trainer::event(const std::string& level, const std::string& text) {
  for (TrainObserver* observer : observers_) observer->on_event(level, text);
}

void Trainer::advance_clock() {
  const Clock::time_point now = Clock::now();
  progress_.seconds +=
      std::chrono::duration<double>(now - clock_).count();  // what lies between two calls, all of it
  clock_ = now;
}

}  // namespace basin
