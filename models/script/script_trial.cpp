#include "models/script/script_trial.h"

#include "core/error.h"
#include "core/seed.h"
#include "models/script/script_file.h"

namespace basin {
namespace {

constexpr int64_t kExamples = 4;

at::Tensor trial_inputs(const InputShape& shape, at::ScalarType dtype) {
  at::Generator generator = make_generator(derive_seed(0, "script-trial"));
  std::vector<int64_t> sizes = shape.example();
  sizes.insert(sizes.begin(), kExamples);
  if (shape.tokens > 0) return at::randint(shape.tokens, sizes, generator, at::kLong);
  return at::empty(sizes, at::kFloat).normal_(0, 1, generator).to(dtype);
}

class Trial {
 public:
  Trial(const torch::jit::Module& module, const InputShape& shape, const std::string& where)
      : module_(module.deepcopy()), shape_(shape), where_(where) {
    cast(at::kFloat);
  }

  void refuse_frozen() const {
    for (const at::Tensor& parameter : module_.parameters())
      if (parameter.requires_grad()) return;
    throw ConfigError(where_ + ": no parameter that is trained: a frozen script can't be measured");
  }

  // In eval mode: any number of examples, each by itself.
  void refuse_fixed_batch() {
    const at::NoGradGuard no_grad;
    module_.eval();
    const at::Tensor x = trial_inputs(shape_, at::kFloat);
    const at::Tensor all = logits(x);
    // Float32 sums in another order; a fault is of order one.
    for (const int64_t n : {kExamples - 1, int64_t{1}}) {
      const at::Tensor some = logits(x.narrow(0, 0, n));
      if (!at::allclose(all.narrow(0, 0, n), some, 1e-3, 1e-3, /*equal_nan=*/true))
        throw ConfigError(where_ +
                          ": in eval mode the output of an example depends on the others in the batch, or is "
                          "drawn at random");
    }
  }

  void refuse_without_second_derivatives() {
    module_.eval();
    std::vector<at::Tensor> parameters;
    for (const at::Tensor& parameter : module_.parameters())
      if (parameter.requires_grad()) parameters.push_back(parameter);
    const at::AutoGradMode record(true);
    try {
      const auto first = torch::autograd::grad({logits(trial_inputs(shape_, at::kFloat)).square().sum()},
                                               parameters, {}, true,
                                               /*create_graph=*/true, /*allow_unused=*/true);
      at::Tensor norm;
      for (const at::Tensor& gradient : first) {
        if (!gradient.defined() || !gradient.requires_grad()) continue;
        norm = norm.defined() ? norm + gradient.square().sum() : gradient.square().sum();
      }
      if (norm.defined()) torch::autograd::grad({norm}, parameters, {}, false, false, /*allow_unused=*/true);
    } catch (const std::exception& error) {
      throw ConfigError(fmt::format("{}: no second derivatives: {}", where_, script_fault(error)));
    }
  }

  // By a shift of its own for each element: one that all share is subtracted by layer and group norms too, in every mode. In float64 what
  // is left of it is rounding, over a norm's eps at worst.
  std::vector<std::string> cancelled() {
    std::vector<ScriptNorm> norms = norms_of(module_);
    if (norms.empty()) return {};
    cast(at::kDouble);
    const at::NoGradGuard no_grad;
    module_.eval();
    for (ScriptNorm& norm : norms) norm.by_batch(true);
    const at::Tensor x = trial_inputs(shape_, at::kDouble), before = logits(x);
    at::Generator generator = make_generator(derive_seed(0, "script-shift"));
    std::vector<std::string> names;
    for (const auto& [name, parameter] : module_.named_parameters()) {
      if (!parameter.requires_grad() || parameter.dim() != 1) continue;
      const at::Tensor shift = at::empty_like(parameter).normal_(0, 1, generator);
      parameter.add_(shift);
      if (at::allclose(logits(x), before, 1e-9, 1e-9)) names.push_back(name);
      parameter.sub_(shift);
    }
    return names;
  }

  // From a call that starts at statistics of 0 and one that starts at 1: (1 - momentum) apart. In float64, for statistics in float64
  // follow from it.
  std::vector<double> momenta() {
    std::vector<ScriptNorm> norms = norms_of(module_);
    if (norms.empty()) return {};
    cast(at::kDouble);
    const std::vector<at::Tensor> from_zero = statistics_after(norms, 0),
                                  from_one = statistics_after(norms, 1);
    std::vector<double> momenta;
    for (size_t i = 0; i < norms.size(); ++i) {
      const double kept = (from_one[i] - from_zero[i]).mean().item<double>();
      if (std::isnan(kept)) throw ConfigError(where_ + ": random inputs give a batch norm NaN");
      if (!(kept < 1 - 1e-9) || !(kept > -1e-9))
        throw ConfigError(
            where_ +
            ": a batch norm keeps its running statistics in training mode (a trace fixes the mode: use "
            "torch.jit.script)");
      momenta.push_back(1 - kept);
    }
    return momenta;
  }

 private:
  // Integers stay: Module::to() would make numbers of positions.
  void cast(at::ScalarType dtype) {
    const auto change = [&](at::Tensor tensor) {
      if (tensor.is_floating_point()) tensor.set_data(tensor.detach().to(dtype));
    };
    for (const at::Tensor& parameter : module_.parameters()) change(parameter);
    for (const at::Tensor& buffer : module_.buffers()) change(buffer);
  }

  at::Tensor logits(const at::Tensor& x) {
    try {
      return script_logits(run_script(module_, x), x.size(0), shape_.output(), where_);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw ConfigError(fmt::format("{}: fails on {} inputs [{}] of {}: {}", where_, x.size(0),
                                    fmt::join(shape_.example(), ", "), c10::toString(x.scalar_type()),
                                    script_fault(error)));
    }
  }

  std::vector<at::Tensor> statistics_after(std::vector<ScriptNorm>& norms, double start) {
    const at::NoGradGuard no_grad;
    for (ScriptNorm& norm : norms) {
      norm.by_batch(true);
      norm.fill_statistics(start);
    }
    logits(trial_inputs(shape_, at::kDouble));
    std::vector<at::Tensor> means;
    for (const ScriptNorm& norm : norms) means.push_back(norm.mean().clone());
    return means;
  }

  torch::jit::Module module_;
  InputShape shape_;
  std::string where_;
};

/// Whether it is the number of classes alone that is too small.
bool more_classes(at::IntArrayRef found, const std::vector<int64_t>& expected) {
  return found.size() == expected.size() &&
         found.slice(0, found.size() - 1) == at::IntArrayRef(expected).slice(0, expected.size() - 1) &&
         found.back() > expected.back();
}

}  // namespace

ScriptFindings try_script(const torch::jit::Module& module, const InputShape& shape,
                          const std::string& where) {
  Trial trial(module, shape, where);
  trial.refuse_frozen();
  trial.refuse_fixed_batch();
  trial.refuse_without_second_derivatives();
  return {trial.momenta(), trial.cancelled()};
}

at::Tensor script_logits(const torch::jit::IValue& returned, int64_t n, const std::vector<int64_t>& output,
                         const std::string& where) {
  if (!returned.isTensor())
    throw ConfigError(fmt::format("{}: returns a {}, not one tensor of logits", where, returned.tagKind()));
  const at::Tensor logits = returned.toTensor();
  std::vector<int64_t> expected{n};
  expected.insert(expected.end(), output.begin(), output.end());
  if (logits.sizes() != expected)
    throw ConfigError(fmt::format("{}: returns [{}] for {} examples; [{}] is expected{}", where,
                                  fmt::join(logits.sizes(), ", "), n, fmt::join(expected, ", "),
                                  more_classes(logits.sizes(), expected)
                                      ? " (data.classes = N: there are more classes than occur)"
                                      : ""));
  if (!logits.is_floating_point()) throw ConfigError(where + ": returns integers, not logits");
  return logits;
}

}  // namespace basin
