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

at::Tensor on_host(const at::Tensor& tensor) { return tensor.detach().to(at::kCPU).contiguous(); }

}  // namespace

void Trainer::save(Checkpoint& checkpoint) const {
  checkpoint.update = progress_.update;
  checkpoint.progress.clear();
  visit_fields(progress_,
               [&](const char* name, const auto& field) { checkpoint.progress[name] = to_value(field); });
  // The last update's, for probes; before the first, that one's.
  checkpoint.progress["learning_rate"] = rates_.at(std::max<int64_t>(0, progress_.update - 1));
  if (known_score_ && known_score_->first == progress_.update)
    checkpoint.progress["train_loss"] = known_score_->second.loss;

  checkpoint.parameters = setup_.model->parameter_table();
  for (ParameterInfo& parameter : checkpoint.parameters) parameter.tensor = on_host(parameter.tensor);
  checkpoint.buffers = setup_.model->buffer_table();
  for (auto& [name, tensor] : checkpoint.buffers) tensor = on_host(tensor);
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
