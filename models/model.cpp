#include "models/model.h"

#include "core/error.h"
#include "core/seed.h"

namespace basin {

namespace {

// torch::nn::Module refuses dots in names.
std::string module_name(std::string name) {
  std::replace(name.begin(), name.end(), '.', '/');
  return name;
}

}  // namespace

std::vector<int64_t> InputShape::example() const {
  return sizes.empty() ? std::vector<int64_t>{channels, height, width} : sizes;
}

std::vector<int64_t> InputShape::output() const {
  return labels > 0 ? std::vector<int64_t>{labels, classes} : std::vector<int64_t>{classes};
}

bool Model::is_cancelled(const at::Tensor& parameter) const {
  return std::any_of(cancelled_.begin(), cancelled_.end(),
                     [&](const at::Tensor& bias) { return bias.is_same(parameter); });
}

void Model::note_cancelled(const at::Tensor& bias) {
  if (!is_cancelled(bias)) cancelled_.push_back(bias);
}

int64_t Model::parameter_count() const {
  int64_t count = 0;
  for (const ParameterInfo& parameter : parameter_table_) count += parameter.tensor.numel();
  return count;
}

void Model::set_norm_mode(NormMode mode, int64_t ghost_batch) {
  if (ghost_batch < 0)
    throw ConfigError(fmt::format("ghost_batch = {} violates ghost_batch >= 0", ghost_batch));
  norm_mode_ = mode;
  ghost_batch_ = ghost_batch;
}

void Model::reset_running_statistics() {
  at::NoGradGuard no_grad;
  for (auto& [name, tensor] : buffer_table_) {
    if (name.ends_with(".running_mean")) tensor.fill_(0.0);
    if (name.ends_with(".running_var")) tensor.fill_(1.0);
  }
  std::fill(accumulated_examples_.begin(), accumulated_examples_.end(), 0);
}

at::Tensor Model::add_parameter(const std::string& layer, const std::string& name, ParameterKind kind,
                                at::Tensor initial) {
  const std::string full_name = layer + "." + name;
  at::Tensor leaf = register_parameter(module_name(full_name), initial.detach());
  parameter_table_.push_back({full_name, layer, kind, leaf});
  return leaf;
}

at::Tensor Model::add_buffer(const std::string& layer, const std::string& name, at::Tensor initial) {
  const std::string full_name = layer + "." + name;
  at::Tensor buffer = register_buffer(module_name(full_name), initial.detach());
  buffer_table_.emplace_back(full_name, buffer);
  return buffer;
}

void Model::seed_dropout(uint64_t master_seed) {
  for (size_t i = 0; i < dropout_keys_.size(); ++i) dropout_keys_[i] = derive_seed(master_seed, "dropout", i);
}

uint64_t Model::dropout_key(size_t dropout) const {
  const std::optional<uint64_t>& key = dropout_keys_.at(dropout);
  TORCH_CHECK(key.has_value(), "a model with dropout needs seed_dropout() to train");
  return *key;
}

const DropoutPlace& Model::dropout_place() const {
  TORCH_CHECK(dropout_place_, "a model with dropout needs set_dropout_place() to train");
  return *dropout_place_;
}

size_t Model::add_dropout() {
  dropout_keys_.emplace_back();
  return dropout_keys_.size() - 1;
}

size_t Model::add_batch_norm() {
  accumulated_examples_.push_back(0);
  return accumulated_examples_.size() - 1;
}

}  // namespace basin
