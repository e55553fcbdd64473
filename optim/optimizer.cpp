#include "optim/optimizer.h"

#include "core/error.h"
#include "core/math/tensor_norms.h"

namespace basin {

namespace {

struct LearningRate : torch::optim::OptimizerCloneableOptions<LearningRate> {
  double value = 0;
  double get_lr() const override { return value; }
  void set_lr(const double lr) override { value = lr; }
};

std::vector<at::Tensor> tensors_of(const std::vector<ParameterInfo>& parameters) {
  std::vector<at::Tensor> tensors;
  for (const ParameterInfo& parameter : parameters) tensors.push_back(parameter.tensor);
  return tensors;
}

/// Laid out as the weights; zeros where it is undefined.
at::Tensor laid_out(const at::Tensor& gradient, const at::Tensor& weights) {
  if (!gradient.defined()) return at::zeros_like(weights);
  if (gradient.strides() == weights.strides()) return gradient;
  return at::empty_like(weights).copy_(gradient);
}

void restore(at::Tensor target, const at::Tensor& saved, const std::string& name) {
  if (saved.sizes() != target.sizes() || saved.scalar_type() != target.scalar_type()) {
    throw IoError(fmt::format("optimiser state \"{}\": expected {} {}, found {} {}", name,
                              c10::toString(target.scalar_type()), target.sizes().vec(),
                              c10::toString(saved.scalar_type()), saved.sizes().vec()));
  }
  target.copy_(saved);
}

}  // namespace

Optimizer::Optimizer(std::vector<ParameterInfo> parameters)
    : torch::optim::Optimizer(tensors_of(parameters), std::make_unique<LearningRate>()),
      parameters_(std::move(parameters)),
      treatments_(parameters_.size()),
      last_step_(parameters_.size()) {}

torch::Tensor Optimizer::step(LossClosure closure) {
  torch::Tensor loss;
  if (closure) {
    go_to_gradient_point();
    at::AutoGradMode enable_grad(true);
    loss = closure();
  }
  at::NoGradGuard no_grad;
  leave_gradient_point();
  prepare_twin();
  TensorLists lists = weights_and_gradients();
  update(lists);
  clean_gradients_.clear();
  // The passes write memory that autograd doesn't watch: a graph kept from before would else read new weights unnoticed.
  for (const at::Tensor& weights : lists.weights) weights.unsafeGetTensorImpl()->bump_version();
  ++updates_;
  return loss;
}

TensorLists Optimizer::weights_and_gradients() const {
  TensorLists lists;
  for (const ParameterInfo& parameter : parameters_) {
    const at::Tensor& weights = parameter.tensor;
    TORCH_CHECK(weights.is_non_overlapping_and_dense(), parameter.name,
                ": weights aren't contiguous in memory");
    lists.weights.push_back(weights);
    lists.gradients.push_back(laid_out(weights.grad(), weights));
  }
  for (size_t i = 0; i < clean_gradients_.size(); ++i)
    lists.clean_gradients.push_back(laid_out(clean_gradients_[i], lists.weights[i]));
  lists.clean_first = twin_;
  return lists;
}

void Optimizer::set_clean_gradients(std::vector<at::Tensor> gradients) {
  TORCH_CHECK(takes_clean_gradients(), "this method takes no clean gradients");
  TORCH_CHECK(gradients.size() == parameters_.size(), "one clean gradient for each parameter");
  clean_gradients_ = std::move(gradients);
}

// A twin begins as the slot: until then no noise came between them.
void Optimizer::prepare_twin() {
  if (clean_gradients_.empty() || !has_clean_twin_) {
    twin_.clear();
  } else if (twin_.empty()) {
    for (const at::Tensor& tensor : slot(0)) twin_.push_back(tensor.clone());
  }
}

void Optimizer::report(const StepReport& report) {
  report_is_on_gpu_ = takes_norms_ && report.sums.empty();
  if (!takes_norms_) {
    last_step_.assign(parameters_.size(), {});
  } else if (!report_is_on_gpu_) {
    note(report);
  }
}

const std::vector<ParameterStep>& Optimizer::last_step() const {
  if (report_is_on_gpu_ && tables_) note(last_report(*tables_));
  report_is_on_gpu_ = false;
  return last_step_;
}

void Optimizer::note(const StepReport& report) const {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const TensorSums& sums = report.sums[i];
    last_step_[i] = {.weight_norm = std::sqrt(sums.weight),
                     .gradient_norm = std::sqrt(sums.gradient),
                     .update_norm = std::sqrt(sums.change),
                     .trust_ratio = has_trust_ratios() && treatments_[i].trust ? report.ratios[i] : NAN};
  }
}

std::vector<at::Tensor> Optimizer::preconditioner(const std::vector<at::Tensor>& /*gradients*/) const {
  std::vector<at::Tensor> p;
  for (size_t i = 0; i < parameters_.size(); ++i)
    p.push_back(at::full_like(parameters_[i].tensor.detach(), 1 / treatments_[i].rate_factor));
  return p;
}

std::vector<at::Tensor> Optimizer::no_diagonal() const {
  std::vector<at::Tensor> unknown = Optimizer::preconditioner({});
  for (at::Tensor& p : unknown) p.fill_(NAN);
  return unknown;
}

void Optimizer::add_slot(const std::string& name) {
  add_slot(name, std::vector<bool>(parameters_.size(), true));
}

void Optimizer::add_slot(const std::string& name, const std::vector<bool>& needed) {
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor weights = parameters_[i].tensor.detach();
    tensors.push_back(needed[i] ? at::zeros_like(weights) : at::empty({0}, weights.options()));
  }
  slots_.emplace_back(name, std::move(tensors));
}

NamedTensors Optimizer::state() const {
  NamedTensors state;
  for (const auto& [name, value] : counters_) state.emplace_back(name, at::scalar_tensor(*value, at::kLong));
  for (const auto& [name, value] : numbers_) state.emplace_back(name, at::scalar_tensor(*value, at::kDouble));
  for (const auto& [name, tensors] : slots_) {
    for (size_t i = 0; i < tensors.size(); ++i)
      state.emplace_back(name + "/" + parameters_[i].name, tensors[i].clone());
  }
  for (size_t i = 0; i < twin_.size(); ++i)
    state.emplace_back(twin_name() + "/" + parameters_[i].name, twin_[i].clone());
  return state;
}

void Optimizer::load_state(const NamedTensors& state) {
  std::map<std::string, at::Tensor> saved(state.begin(), state.end());
  const auto take = [&](const std::string& name) {
    const auto node = saved.extract(name);
    if (node.empty()) throw IoError("optimiser state lacks \"" + name + "\"");
    return node.mapped();
  };
  const auto take_one = [&](const std::string& name, bool holds_type(const at::Tensor&), const char* type) {
    const at::Tensor one = take(name);
    if (one.numel() != 1 || !holds_type(one))
      throw IoError(fmt::format("optimiser state \"{}\": expected one {}, found {} {}", name, type,
                                c10::toString(one.scalar_type()), one.sizes().vec()));
    return one;
  };
  std::vector<int64_t> counts;
  for (const auto& [name, value] : counters_)
    counts.push_back(take_one(
                         name, [](const at::Tensor& t) { return t.scalar_type() == at::kLong; }, "Long")
                         .item<int64_t>());
  std::vector<double> numbers;  // of any floating type: probes read the state in theirs
  for (const auto& [name, value] : numbers_)
    numbers.push_back(take_one(
                          name, [](const at::Tensor& t) { return t.is_floating_point(); }, "Double")
                          .item<double>());
  const auto restore_slot = [&](const std::string& name, const std::vector<at::Tensor>& tensors) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const std::string full_name = name + "/" + parameters_[i].name;
      restore(tensors[i], take(full_name), full_name);
    }
  };
  for (const auto& [name, tensors] : slots_) restore_slot(name, tensors);
  twin_.clear();
  if (has_clean_twin_ && saved.count(twin_name() + "/" + parameters_.front().name)) {
    for (const at::Tensor& tensor : slot(0)) twin_.push_back(at::empty_like(tensor));
    restore_slot(twin_name(), twin_);
  }
  if (!saved.empty()) throw IoError("optimiser state has an unknown entry \"" + saved.begin()->first + "\"");
  for (size_t i = 0; i < counts.size(); ++i) *counters_[i].second = counts[i];
  for (size_t i = 0; i < numbers.size(); ++i) *numbers_[i].second = numbers[i];
}

}  // namespace basin
