// Trainer::save and Trainer::restore.
#include "core/error.h"
#include "trainers/trainer.h"

namespace basin {
namespace {

using Progress = std::map<std::string, OptionValue>;

template <class T>
void take(const Progress& progress, const std::string& key, T& field) {
  const auto found = progress.find(key);
  if (found == progress.end()) throw IoError("checkpoint: progress has no \"" + key + "\"");
  if (!std::holds_alternative<T>(found->second))
    throw IoError("checkpoint: progress \"" + key + "\" has the wrong type");
  field = std::get<T>(found->second);
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
  throw IoError(fmt::format(
      "checkpoint: /generators/{}: its dropout masks came from a generator that is no more; the run "
      "can be probed, but not resumed: remove its folder to train it anew",
      checkpoint.generators.front().first));
}

at::Tensor on_host(const at::Tensor& tensor) { return tensor.detach().to(at::kCPU).contiguous(); }

}  // namespace

void Trainer::save(Checkpoint& checkpoint) const {
  checkpoint.update = state_.update;
  checkpoint.progress = {{"update", state_.update},
                         {"examples", state_.examples},
                         {"gradients", state_.gradients},
                         {"next_check", state_.next_check},
                         {"near_target", state_.near_target},
                         {"next_evaluation", state_.next_evaluation},
                         {"levels_passed", state_.levels_passed},
                         {"steps_to_target", state_.steps_to_target},
                         {"overshot", state_.overshot},
                         {"ending", state_.ending},
                         {"message", state_.message},
                         {"seconds", state_.seconds},
                         {"update_seconds", state_.update_seconds},
                         // Of the last update, for probes; before the first, that one's.
                         {"learning_rate", rates_.at(std::max<int64_t>(0, state_.update - 1))}};
  if (known_score_ && known_score_->first == state_.update)
    checkpoint.progress["train_loss"] = known_score_->second.loss;
  if (level_) {
    checkpoint.progress["level"] = *level_;
    checkpoint.progress["level_overshot"] = CheckRule::overshot_level(known_score_->second.loss, *level_);
  }

  checkpoint.parameters = setup_.model->parameter_table();
  for (ParameterInfo& parameter : checkpoint.parameters) parameter.tensor = on_host(parameter.tensor);
  checkpoint.buffers = setup_.model->buffer_table();
  for (auto& [name, tensor] : checkpoint.buffers) tensor = on_host(tensor);
  checkpoint.optimizer = setup_.optimizer.state();
  for (auto& [name, tensor] : checkpoint.optimizer) tensor = on_host(tensor);
  checkpoint.average = average_ ? average_->state() : NamedTensors();
  checkpoint.slow_weights = lookahead_ ? lookahead_->state() : NamedTensors();
  if (noise_) noise_->save(checkpoint);
}

void Trainer::restore(const Checkpoint& checkpoint) {
  refuse_generators(checkpoint);
  restore_model(*setup_.model, checkpoint);
  setup_.optimizer.load_state(checkpoint.optimizer);
  if (average_) average_->load_state(checkpoint.average);
  if (lookahead_) lookahead_->load_state(checkpoint.slow_weights);
  if (noise_) noise_->restore(checkpoint);
  const Progress& progress = checkpoint.progress;
  State state;
  take(progress, "update", state.update);
  take(progress, "examples", state.examples);
  take(progress, "gradients", state.gradients);
  take(progress, "next_check", state.next_check);
  take(progress, "near_target", state.near_target);
  take(progress, "next_evaluation", state.next_evaluation);
  take(progress, "levels_passed", state.levels_passed);
  take(progress, "steps_to_target", state.steps_to_target);
  take(progress, "overshot", state.overshot);
  take(progress, "ending", state.ending);
  take(progress, "message", state.message);
  take(progress, "seconds", state.seconds);
  take(progress, "update_seconds", state.update_seconds);
  state_ = state;
  known_score_.reset();
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
