#include "hessian/gradients/per_example_gradients.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "core/error.h"
#include "core/interrupt.h"
#include "hessian/gradients/graph_leaves.h"
#include "hessian/gradients/layer_gradients.h"
#include "hessian/gradients/output_gradients.h"
#include "hessian/objective.h"
#include "models/scoped_norm_mode.h"

namespace basin {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw ConfigError("per-example gradients: " + why); }

void check_mode(const Model& model) {
  if (model.is_training()) refuse("the network is in training mode; they exist in eval mode alone");
  if (!model.has_own_layers() && model.has_batch_statistics() && model.norm_mode() != NormMode::running)
    refuse("the network normalises by statistics of the batch");
}

std::string layer_of(const ParameterVector& vector, const LayerCall& call) {
  for (const ParameterInfo& p : vector.parameters()) {
    if (p.tensor.is_same(call.weight) || p.tensor.is_same(call.bias)) return p.layer;
  }
  return "without parameters";
}

}  // namespace

ExampleSums PerExampleGradients::sums(bool squares) {
  const ParameterVector& vector = problem_.parameters();
  const auto options = at::device(problem_.device()).dtype(at::kDouble);
  ExampleSums found{by_example(), at::zeros({vector.size()}, options), {}};
  if (squares) found.mean_square = at::zeros_like(found.mean);
  const std::vector<at::Tensor> mean = vector.unflatten(found.mean);
  const std::vector<at::Tensor> mean_square =
      squares ? vector.unflatten(found.mean_square) : std::vector<at::Tensor>();
  for_each([&](int64_t first, size_t tensor, const ExampleGradients& gradients) {
    const ExampleGradients::Moments moments = gradients.moments(squares);
    found.squared_norms.select(1, static_cast<int64_t>(tensor))
        .narrow(0, first, moments.squared_norms.size(0))
        .copy_(moments.squared_norms);
    mean[tensor].add_(moments.sum);
    if (squares) mean_square[tensor].add_(moments.sum_of_squares);
  });
  sum_over_ranks({found.squared_norms, found.mean, found.mean_square});
  const auto n = static_cast<double>(problem_.examples());
  found.mean.div_(n);
  if (squares) found.mean_square.div_(n);
  return found;
}

std::vector<at::Tensor> PerExampleGradients::products(const std::vector<ExampleWeights>& weights) {
  const ParameterVector& vector = problem_.parameters();
  const auto pieces = [&](const at::Tensor& flat) {
    if (!flat.defined()) return std::vector<at::Tensor>(vector.parameters().size());
    return vector.unflatten(flat.to(problem_.device(), problem_.dtype()));
  };
  std::vector<std::pair<std::vector<at::Tensor>, std::vector<at::Tensor>>> unflat;
  std::vector<at::Tensor> found;
  for (const ExampleWeights& one : weights) {
    unflat.emplace_back(pieces(one.linear), pieces(one.quadratic));
    found.push_back(by_example());
  }
  for_each([&](int64_t first, size_t tensor, const ExampleGradients& gradients) {
    for (size_t k = 0; k < found.size(); ++k) {
      const at::Tensor sums = gradients.products(unflat[k].first[tensor], unflat[k].second[tensor]);
      found[k].select(1, static_cast<int64_t>(tensor)).narrow(0, first, sums.size(0)).copy_(sums);
    }
  });
  sum_over_ranks(found);
  return found;
}

// Each rank has its examples' numbers, in their places, and zeros for the others.
void PerExampleGradients::sum_over_ranks(const std::vector<at::Tensor>& found) const {
  const Objective* network = problem_.network();
  if (!network || !network->model().has_own_layers()) return;  // every rank asked for all
  for (const at::Tensor& tensor : found)
    if (tensor.defined()) network->ranks().sum(tensor);
}

void PerExampleGradients::for_each(const Take& take) {
  Objective* network = problem_.network();
  if (!network) {
    take_one_by_one(take);
    return;
  }
  // Folded into the layer before, a norm's parameters would have no call to read gradients from.
  Model& model = network->model();
  const bool folded = model.norm_mode() == NormMode::folded;
  const ScopedNormMode as_layers(model, folded ? NormMode::running : model.norm_mode());
  check_mode(model);
  model.has_own_layers() ? take_by_layers(*network, take) : take_one_by_one(take);
}

void PerExampleGradients::take_by_layers(Objective& objective, const Take& take) {
  const Share here = objective.micro_batches_here();
  for (int64_t k = here.first; k < here.last; ++k) {
    const int64_t first = k * objective.micro_batch();
    throw_if_interrupted();
    take_micro_batch(objective, first, std::min(objective.micro_batch(), objective.examples() - first), take);
  }
}

void PerExampleGradients::take_one_by_one(const Take& take) {
  const ParameterVector& vector = problem_.parameters();
  for (int64_t i = 0; i < problem_.examples(); ++i) {
    throw_if_interrupted();
    const std::vector<at::Tensor> gradient =
        vector.unflatten(problem_.gradient_over(at::full({1}, i, at::kLong)));
    for (size_t tensor = 0; tensor < gradient.size(); ++tensor)
      take(i, tensor, *plain_gradients(gradient[tensor].unsqueeze(0), gradient[tensor].sizes()));
  }
}

void PerExampleGradients::take_micro_batch(Objective& objective, int64_t first, int64_t count,
                                           const Take& take) {
  const at::AutoGradMode record(true);
  at::Tensor loss;
  std::vector<LayerCall> calls;
  {
    const LayerCalls noted;
    loss = objective.losses(objective.logits(first, count), first, count).sum();
    calls = noted.list();
  }
  check(loss, calls);
  const std::vector<int64_t> count_of = calls_by_parameter(calls);
  std::vector<at::Tensor> sums(count_of.size());  // of parameters with several calls
  for_each_output_gradient(loss, calls, [&](size_t which, const at::Tensor& gradient) {
    const at::NoGradGuard no_grad;
    for (const ParameterGradients& one : gradients_of(calls[which], gradient)) {
      const size_t place = place_of(one.parameter);
      if (count_of[place] == 1) {
        take(first, place, *one.gradients);
      } else {
        const at::Tensor formed = one.gradients->formed();
        sums[place] = sums[place].defined() ? sums[place] + formed : formed;
      }
    }
    calls[which].x.reset();  // the graph alone holds it now
  });
  const at::NoGradGuard no_grad;
  for (size_t place = 0; place < sums.size(); ++place)
    if (sums[place].defined())
      take(first, place, *plain_gradients(sums[place], sums[place].sizes().slice(1)));
}

size_t PerExampleGradients::place_of(const at::Tensor& parameter) const {
  const std::vector<ParameterInfo>& parameters = problem_.parameters().parameters();
  const auto place = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const ParameterInfo& p) { return p.tensor.is_same(parameter); });
  return static_cast<size_t>(place - parameters.begin());
}

std::vector<int64_t> PerExampleGradients::calls_by_parameter(const std::vector<LayerCall>& calls) const {
  std::vector<int64_t> counts(problem_.parameters().parameters().size() + 1);  // the last: of no parameter
  for (const LayerCall& call : calls)
    for (const at::Tensor& tensor : {call.weight, call.bias})
      if (tensor.defined()) ++counts[place_of(tensor)];
  return counts;
}

void PerExampleGradients::check(const at::Tensor& loss, const std::vector<LayerCall>& calls) const {
  const ParameterVector& vector = problem_.parameters();
  for (const LayerCall& call : calls) {
    if (call.kind == LayerCall::Kind::batch_statistics)
      refuse(fmt::format("layer {} normalises by statistics of the batch", layer_of(vector, call)));
    if (call.kind == LayerCall::Kind::linear && call.x.dim() > 3) {
      refuse(fmt::format("layer {} is linear over inputs of {} dimensions; only 2 and 3 are supported",
                         layer_of(vector, call), call.x.dim()));
    }
  }
  const auto uses = uses_of_leaves(loss);
  const std::vector<int64_t> known = calls_by_parameter(calls);
  for (size_t i = 0; i < vector.parameters().size(); ++i) {
    const ParameterInfo& p = vector.parameters()[i];
    const auto used = uses.find(p.tensor.unsafeGetTensorImpl());
    if (used == uses.end()) continue;
    if (used->second > known[i]) {
      refuse(fmt::format(
          "{} of layer {} enters the loss outside of convolutions, linear layers, embeddings and norms",
          p.name, p.layer));
    }
  }
}

at::Tensor PerExampleGradients::by_example() const {
  return at::zeros({problem_.examples(), static_cast<int64_t>(problem_.parameters().parameters().size())},
                   at::device(problem_.device()).dtype(at::kDouble));
}

}  // namespace basin
