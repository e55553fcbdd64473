#include "models/loss.h"

#include "core/error.h"
#include "core/nearest.h"

namespace basin {
namespace {

/// One for each label, or the mean over an example's tokens.
at::Tensor cross_entropies(const at::Tensor& outputs, const at::Tensor& labels, double smoothing) {
  const at::Tensor rows = labels.dim() > 1 ? outputs.flatten(0, -2) : outputs;
  const at::Tensor losses = at::cross_entropy_loss(rows, labels.flatten(), {}, at::Reduction::None,
                                                   /*ignore_index=*/-100, smoothing);
  return labels.dim() > 1 ? losses.view_as(labels).flatten(1).mean(1) : losses;
}

std::string described(LabelKind kind) {
  switch (kind) {
    case LabelKind::classes:
      return "one class per example";
    case LabelKind::tokens:
      return "a class for each of an example's tokens";
    case LabelKind::numbers:
      return "numbers";
  }
  return "";
}

}  // namespace

const std::vector<std::string>& loss_names() {
  static const std::vector<std::string> names{"cross_entropy", "token_cross_entropy", "mse"};
  return names;
}

const char* to_string(LossKind kind) { return loss_names()[static_cast<size_t>(kind)].c_str(); }

const char* units_of(LossKind kind) { return kind == LossKind::mse ? "1" : "nat"; }

LossKind loss_kind(const std::string& name) {
  const auto found = std::find(loss_names().begin(), loss_names().end(), name);
  if (found == loss_names().end()) throw ConfigError(unknown_name("loss", name, loss_names()));
  return static_cast<LossKind>(found - loss_names().begin());
}

LabelKind label_kind(const at::Tensor& labels) {
  if (labels.is_floating_point()) return LabelKind::numbers;
  return labels.dim() > 1 ? LabelKind::tokens : LabelKind::classes;
}

void check_loss(LossKind kind, const at::Tensor& labels, const std::string& data_set) {
  const LabelKind found = label_kind(labels);
  const std::string wanted = found == LabelKind::classes  ? "cross_entropy or mse"
                             : found == LabelKind::tokens ? "token_cross_entropy"
                                                          : "mse";
  const bool fits = kind == LossKind::mse                   ? found != LabelKind::tokens
                    : kind == LossKind::token_cross_entropy ? found == LabelKind::tokens
                                                            : found == LabelKind::classes;
  if (!fits)
    throw ConfigError(fmt::format("loss = \"{}\": the labels of {} are {}; loss = {} fits them",
                                  to_string(kind), data_set, described(found), wanted));
}

at::Tensor example_losses(LossKind kind, const at::Tensor& outputs, const at::Tensor& labels) {
  if (kind != LossKind::mse) return cross_entropies(outputs, labels, /*smoothing=*/0);
  const at::Tensor target = labels.is_floating_point() ? labels : at::one_hot(labels, outputs.size(1));
  return (outputs - target.to(outputs.scalar_type())).square().flatten(1).sum(1).mul(0.5);
}

at::Tensor example_hits(const at::Tensor& outputs, const at::Tensor& labels) {
  if (labels.is_floating_point())
    return at::full({labels.size(0)}, std::nan(""), outputs.options().dtype(at::kDouble));
  const at::Tensor hits = outputs.argmax(-1).eq(labels).to(at::kDouble);
  return hits.dim() > 1 ? hits.flatten(1).mean(1) : hits;
}

at::Tensor smoothed_losses(const at::Tensor& outputs, const at::Tensor& labels, double smoothing) {
  return cross_entropies(outputs, labels, smoothing);
}

}  // namespace basin
