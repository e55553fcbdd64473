#include "landscape/curve_training.h"

#include "core/error.h"
#include "core/seed.h"

namespace basin {
namespace {

int64_t updates_for(const CurveTrainingOptions& options, int64_t examples) {
  const double batches_an_epoch = static_cast<double>(examples) / static_cast<double>(options.batch_size);
  return std::max<int64_t>(1, std::llround(options.epochs * batches_an_epoch));
}

std::vector<ParameterInfo> trained_bends(const Curve& curve, int64_t trained) {
  std::vector<ParameterInfo> bends;
  for (int64_t k = 0; k < curve.bends(); ++k) {
    const std::string name = fmt::format("bend{}", k + 1);
    bends.push_back({name, name, ParameterKind::weight, curve.bend(k).narrow(0, 0, trained)});
  }
  return bends;
}

}  // namespace

void bind_options(OptionTable& table, CurveTrainingOptions& options) {
  table.add("epochs", options.epochs, greater_than(0),
            "epochs over the training examples, for all bends together");
  table.add("batch_size", options.batch_size, at_least(1), "examples per update");
  table.add("learning_rate", options.learning_rate, greater_than(0),
            "peak learning rate; 5 % warm-up, then a cosine down to 0");
  table.add("momentum", options.momentum, half_open(0, 1), "heavy-ball momentum of the bends");
}

CurveTraining::CurveTraining(Curve& curve, int64_t trained, int64_t examples,
                             const CurveTrainingOptions& options, uint64_t seed)
    : curve_(curve),
      options_(options),
      seed_(seed),
      examples_(examples),
      updates_(updates_for(options, examples)),
      bends_(trained_bends(curve, trained)),
      stream_(seed, examples) {
  SgdOptions sgd;
  sgd.momentum = options.momentum;
  optimizer_ = std::make_unique<Sgd>(bends_, sgd);
  rates_ = std::make_unique<RateSchedule>(
      ScheduleOptions{}, options.learning_rate, optimizer_->gain(),
      RunShape{options.batch_size, updates_, static_cast<double>(updates_) / options.epochs});
}

double CurveTraining::draw(int64_t update) const {
  const uint64_t bits = derive_seed(seed_, "curve-position", static_cast<uint64_t>(update));
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

void CurveTraining::step(const BatchLoss& loss) {
  const double t = draw(update_);
  const Batch batch =
      stream_.slice(update_ * options_.batch_size, options_.batch_size, /*merge_duplicates=*/false);
  at::Tensor gradient;
  const double value = loss(curve_.at(t), at::tensor(batch.examples, at::kLong), gradient);
  if (!std::isfinite(value) || !at::isfinite(gradient).all().item<bool>()) {
    diverged_ = true;
    return;
  }
  const std::vector<double> coefficients = curve_.coefficients(t);
  for (size_t k = 0; k < bends_.size(); ++k)
    bends_[k].tensor.mutable_grad() = gradient.to(bends_[k].tensor.options()) * coefficients[k + 1];
  optimizer_->set_learning_rate(rates_->at(update_));
  optimizer_->step();
  note(value);
  ++update_;
}

void CurveTraining::note(double loss) {
  loss_sum_ += loss;
  ++losses_;
  const auto epochs_after = [this](int64_t updates) { return updates * options_.batch_size / examples_; };
  if (epochs_after(update_ + 1) == epochs_after(update_) && update_ + 1 < updates_) return;
  epoch_losses_.push_back(loss_sum_ / static_cast<double>(losses_));
  loss_sum_ = 0;
  losses_ = 0;
}

void CurveTraining::save(Checkpoint& checkpoint) const {
  checkpoint.update = update_;
  checkpoint.progress = {{"diverged", diverged_}, {"loss_sum", loss_sum_}, {"losses", losses_}};
  if (!epoch_losses_.empty()) checkpoint.progress["epoch_losses"] = epoch_losses_;
  checkpoint.parameters = bends_;
  checkpoint.optimizer = optimizer_->state();
}

void CurveTraining::restore(const Checkpoint& checkpoint) {
  const at::NoGradGuard no_grad;
  if (checkpoint.parameters.size() != bends_.size())
    throw IoError(fmt::format("the state of a curve has {} bends, this one {}", checkpoint.parameters.size(),
                              bends_.size()));
  for (size_t k = 0; k < bends_.size(); ++k) bends_[k].tensor.copy_(checkpoint.parameters[k].tensor);
  optimizer_->load_state(checkpoint.optimizer);
  update_ = checkpoint.update;
  diverged_ = std::get<bool>(checkpoint.progress.at("diverged"));
  loss_sum_ = std::get<double>(checkpoint.progress.at("loss_sum"));
  losses_ = std::get<int64_t>(checkpoint.progress.at("losses"));
  const auto losses = checkpoint.progress.find("epoch_losses");
  epoch_losses_ = losses == checkpoint.progress.end() ? std::vector<double>()
                                                      : std::get<std::vector<double>>(losses->second);
}

}  // namespace basin
