// Trainer::save and Trainer::restore.
#include "core/error.h"
#include "io/enum_names.h"
#include "trainers/trainer.h"

namespace basin {
namespace {

using Values = std::map<std::string, OptionValue>;

const EnumNames<Ending>& ending_names() {
  static const EnumNames<Ending> table(
      "ending", {{Ending::none, ""}, {Ending::target, "target"}, {Ending::diverged, "diverged"}});
  return table;
}

template <class T>
OptionValue to_value(const T& field) {
  return field;
}
OptionValue to_value(const Ending& ending) { return std::string(ending_names().text(ending)); }

template <class T>
void take(const Values& values, const std::string& key, T& field) {
  const auto found = values.find(key);
  if (found == values.end()) throw IoError("checkpoint: progress has no \"" + key + "\"");
  if (!std::holds_alternative<T>(found->second))
    throw IoError("checkpoint: progress \"" + key + "\" has the wrong type");
  field = std::get<T>(found->second);
}
void take(const Values& values, const std::string& key, Ending& field) {
  std::string text;
  take(values, key, text);
  const std::optional<Ending> known = ending_names().find(text);
  if (!known)
    throw IoError("checkpoint: progress \"" + key + "\" is \"" + text +
                  "\", which this version doesn't know");
  field = *known;
}

void copy_into(at::Tensor target, const at::Tensor& source, const std::string& name) {
  if (target.sizes() != source.sizes()) {
    throw IoError(fmt::format("checkpoint: {} has shape [{}], the model's has [{}]", name,
                              fmt::join(source.sizes(), ", "), fmt::join(target.sizes(), ", ")));
  }
  const at::NoGradGuard no_grad;
  target.copy_(source);
}

// A run that went on with other masks would be neither the old run nor a new one.
void refuse_generators(const Checkpoint& checkpoint) {
  if (checkpoint.generators.empty()) return;
  throw IoError(
      fmt::format("checkpoint: /generators/{}: its dropout masks came from a generator that no longer "
                  "exists; the run can be probed, but not resumed: remove its folder to train it again",
                  checkpoint.generators.front().first));
}

// What a hook would save, or nothing of it, is in the checkpoint: the parent had it, or it begins at the branch.
bool has_state_of(const UpdateHook& hook, const Checkpoint& checkpoint) {
  Checkpoint own;
  hook.save(own);
  const auto is_there = [](const auto& stored) {
    return [&](const auto& entry) { return stored.count(entry.first) > 0; };
  };
  return std::all_of(own.states.begin(), own.states.end(), is_there(checkpoint.states)) &&
         std::all_of(own.progress.begin(), own.progress.end(), is_there(checkpoint.progress));
}

NamedTensors rescaled(NamedTensors state, const std::string& slot, double factor) {
  for (auto& [name, tensor] : state)
    if (!slot.empty() && name.rfind(slot + "/", 0) == 0) tensor = tensor * factor;
  return state;
}

int64_t levels_at_or_above(const std::vector<double>& levels, double loss) {
  return std::count_if(levels.begin(), levels.end(), [&](double level) { return level >= loss; });
}

at::Tensor on_host(const at::Tensor& tensor) { return tensor.detach().to(at::kCPU).contiguous(); }

}  // namespace

void Trainer::save(Checkpoint& checkpoint) const {
  checkpoint.update = progress_.update;
  checkpoint.progress.clear();
  visit_fields(progress_,
               [&](const char* name, const auto& field) { checkpoint.progress[name] = to_value(field); });
  // The last update's, for probes; before the first, that one's.
  checkpoint.progress["learning_rate"] = last_rate();
  if (branch_) save_branch_point(*branch_, checkpoint.progress);
  if (known_score_ && known_score_->first == progress_.update)
    checkpoint.progress["train_loss"] = known_score_->second.loss;

  store_model(*setup_.model, checkpoint);
  checkpoint.optimizer = setup_.optimizer.state();
  for (auto& [name, tensor] : checkpoint.optimizer) tensor = on_host(tensor);
  checkpoint.states.clear();
  for (const auto& hook : hooks_) hook->save(checkpoint);
}

void Trainer::restore(const Checkpoint& checkpoint) {
  refuse_generators(checkpoint);
  restore_model(*setup_.model, checkpoint);
  setup_.optimizer.load_state(checkpoint.optimizer);
  for (const auto& hook : hooks_) hook->restore(checkpoint);
  RunProgress progress;
  visit_fields(progress, [&](const char* name, auto& field) { take(checkpoint.progress, name, field); });
  progress_ = std::move(progress);
  if (branch_) branch_ = branch_point_of(checkpoint).value_or(*branch_);
  known_score_.reset();
}

void Trainer::begin_branch(const Checkpoint& parent) {
  refuse_generators(parent);
  progress_ = progress_at_branch(parent);
  take_optimizer_state(parent);
  for (const auto& hook : hooks_)
    if (has_state_of(*hook, parent)) hook->restore(parent);
}

// Counters as they are; what says when to look next, as this run's options have it; and no end yet.
RunProgress Trainer::progress_at_branch(const Checkpoint& parent) const {
  RunProgress progress;
  visit_fields(progress, [&](const char* name, auto& field) { take(parent.progress, name, field); });
  progress.ending = Ending::none;
  progress.message.clear();
  progress.steps_to_target = NAN;
  progress.overshot = false;
  progress.seconds = progress.update_seconds = 0;

  double loss = NAN;
  if (const auto known = parent.progress.find("train_loss"); known != parent.progress.end())
    loss = std::get<double>(known->second);
  progress.near_target = checks_.near_target(loss) ||
                         (progress.near_target && setup_.branch->same_target && checks_.matched_loss());
  const double passed = std::fmin(loss, setup_.branch->passed_loss);
  progress.levels_passed = std::isnan(passed) ? 0 : levels_at_or_above(checks_.levels(), passed);
  // A checkpoint at a loss level is kept in the middle of its check, before the next evaluation is set.
  const int64_t examples = progress.examples, every = setup_.train.evaluate_every;
  const int64_t next = checks_.next_check(examples, progress.near_target);
  const auto stands = [&](int64_t due, int64_t latest) { return examples < due && due <= latest; };
  if (!stands(progress.next_check, next)) progress.next_check = next;
  if (!stands(progress.next_evaluation, examples + every)) progress.next_evaluation = examples + every;
  return progress;
}

void Trainer::take_optimizer_state(const Checkpoint& parent) {
  const std::string& how = setup_.train.branch.optimizer;
  if (how == "reset") return;
  const double factor = rate_of(course_.first()) / branch_->learning_rate;
  try {
    setup_.optimizer.load_state(how == "rescaled"
                                    ? rescaled(parent.optimizer, setup_.branch->rate_in_slot, factor)
                                    : parent.optimizer);
  } catch (const IoError& error) {
    throw ConfigError(fmt::format(
        "branch.optimizer = \"{}\": the parent's {}; \"reset\" begins without its state", how, error.what()));
  }
}

double Trainer::rate_of(int64_t update) const {
  return course_.rate(rates_, update) * batches_.rate_factor(course_.position(update));
}

double Trainer::last_rate() const {
  if (progress_.update > course_.first()) return rate_of(progress_.update - 1);
  return branch_ ? branch_->learning_rate : rates_.at(0);
}

void store_model(const Model& model, Checkpoint& checkpoint) {
  checkpoint.parameters = model.parameter_table();
  for (ParameterInfo& parameter : checkpoint.parameters) parameter.tensor = on_host(parameter.tensor);
  checkpoint.buffers = model.buffer_table();
  for (auto& [name, tensor] : checkpoint.buffers) tensor = on_host(tensor);
}

void restore_model(Model& model, const Checkpoint& checkpoint) {
  const std::vector<ParameterInfo>& parameters = model.parameter_table();
  if (parameters.size() != checkpoint.parameters.size() ||
      model.buffer_table().size() != checkpoint.buffers.size()) {
    throw IoError(fmt::format("checkpoint: {} parameters and {} buffers, the model has {} and {}",
                              checkpoint.parameters.size(), checkpoint.buffers.size(), parameters.size(),
                              model.buffer_table().size()));
  }
  const auto find_parameter = [&](const std::string& name) -> const at::Tensor& {
    for (const ParameterInfo& stored : checkpoint.parameters) {
      if (stored.name == name) return stored.tensor;
    }
    throw IoError("checkpoint: no parameter \"" + name + "\"");
  };
  const auto find_buffer = [&](const std::string& name) -> const at::Tensor& {
    for (const auto& [stored, tensor] : checkpoint.buffers) {
      if (stored == name) return tensor;
    }
    throw IoError("checkpoint: no buffer \"" + name + "\"");
  };
  for (const ParameterInfo& parameter : parameters) {
    copy_into(parameter.tensor, find_parameter(parameter.name), parameter.name);
  }
  for (const auto& [name, tensor] : model.buffer_table()) copy_into(tensor, find_buffer(name), name);
}

}  // namespace basin
