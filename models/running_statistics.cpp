#include "models/running_statistics.h"

namespace basin {
namespace {

// Means over the examples of each rank, whose share of all they are, to means over all.
void average_over_ranks(const Model& model, double share, const RankGroup& ranks) {
  if (ranks.is_alone()) return;
  for (auto [name, tensor] : model.buffer_table()) {
    if (!name.ends_with(".running_mean") && !name.ends_with(".running_var")) continue;
    tensor.mul_(share);
    ranks.sum(tensor);
  }
}

}  // namespace

void estimate_running_statistics(Model& model, int64_t examples, const ForwardRange& forward,
                                 int64_t micro_batch, int64_t ghost_batch, const RankGroup& ranks) {
  if (!model.has_batch_statistics()) return;
  const at::NoGradGuard no_grad;
  const bool was_training = model.is_training();
  const int64_t piece = std::max<int64_t>(1, micro_batch / ghost_batch) * ghost_batch;
  model.eval();
  model.reset_running_statistics();
  model.set_norm_mode(NormMode::accumulate, ghost_batch);
  const Share ghosts = ranks.share((examples + ghost_batch - 1) / ghost_batch);
  const int64_t begin = ghosts.first * ghost_batch, end = std::min(examples, ghosts.last * ghost_batch);
  for (int64_t first = begin; first < end; first += piece) forward(first, std::min(piece, end - first));
  average_over_ranks(
      model, static_cast<double>(std::max<int64_t>(0, end - begin)) / static_cast<double>(examples), ranks);
  model.set_norm_mode(NormMode::running, ghost_batch);
  model.train(was_training);
}

}  // namespace basin
