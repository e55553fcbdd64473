#include "trainers/hooks/gpt_neox_noise.h"

#include "core/error.h"
#include "trainers/gradient_norm.h"

namespace basin {
namespace {

// Rounded as a float32 norm and its square are.
double float_square(double square) {
  const auto norm = static_cast<float>(std::sqrt(square));
  return static_cast<double>(norm * norm);
}

}  // namespace

GptNeoxNoise::GptNeoxNoise(const std::vector<ParameterInfo>& parameters, int64_t batch_size,
                           int64_t n_batches, double beta)
    : small_size_(static_cast<double>(batch_size)),
      n_batches_(static_cast<double>(n_batches)),
      beta_(beta),
      window_(n_batches),
      sum_(parameters, "gradient sum") {
  for (const at::Tensor& sum : sum_.tensors()) sum.zero_();
}

std::optional<GptNeoxNoise::Numbers> GptNeoxNoise::add(const std::vector<at::Tensor>& gradients) {
  const double square = gradient_square(gradients);
  if (!std::isfinite(square)) return std::nullopt;
  const std::vector<at::Tensor>& sums = sum_.tensors();
  for (size_t i = 0; i < sums.size(); ++i) sums[i].add_(gradients[i]);
  if (count_ % window_ != window_ - 1) {
    ++count_;
    return std::nullopt;
  }
  Numbers numbers;
  numbers.small_square = float_square(square);
  numbers.big_square = float_square(gradient_square(sums) / (n_batches_ * n_batches_));
  for (const at::Tensor& sum : sums) sum.zero_();
  if (!std::isfinite(numbers.small_square) || !std::isfinite(numbers.big_square)) return numbers;
  const double small = small_size_, big = small * n_batches_;
  const double noise = (big * numbers.big_square - small * numbers.small_square) / (big - small);
  const double scale = (numbers.small_square - numbers.big_square) / (1 / small - 1 / big);
  numbers.noise = averaged(noise_, noise);
  numbers.scale = averaged(scale_, scale);
  numbers.b_simple = numbers.scale / numbers.noise;
  ++count_;
  return numbers;
}

double GptNeoxNoise::averaged(double& average, double value) const {
  average = beta_ * average + (1 - beta_) * value;
  return average / (1 - std::pow(beta_, static_cast<double>(count_ + 1)));
}

void GptNeoxNoise::load_state(const std::vector<double>& state, const NamedTensors& sum) {
  if (state.size() != 3)
    throw IoError(fmt::format("checkpoint: GPT-NeoX's noise scale has {} numbers, not 3", state.size()));
  count_ = static_cast<int64_t>(state[0]);
  noise_ = state[1];
  scale_ = state[2];
  sum_.load_state(sum);
}

}  // namespace basin
