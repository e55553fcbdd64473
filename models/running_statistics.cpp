#include "models/running_statistics.h"

namespace basin {

void estimate_running_statistics(Model& model, int64_t examples, const ForwardRange& forward,
                                 int64_t micro_batch, int64_t ghost_batch) {
  if (!model.has_batch_statistics()) return;
  const at::NoGradGuard no_grad;
  const bool was_training = model.is_training();
  const int64_t piece = std::max<int64_t>(1, micro_batch / ghost_batch) * ghost_batch;
  model.eval();
  model.reset_running_statistics();
  model.set_norm_mode(NormMode::accumulate, ghost_batch);
  for (int64_t first = 0; first < examples; first += piece) forward(first, std::min(piece, examples - first));
  model.set_norm_mode(NormMode::running, ghost_batch);
  model.train(was_training);
}

}  // namespace basin
