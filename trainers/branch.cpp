#include "trainers/branch.h"

#include "core/error.h"

namespace basin {
namespace {

// visit(name, field): what the fields are called in a checkpoint.
template <class Point, class Visit>
void visit_branch_fields(Point& point, Visit&& visit) {
  visit("branch_update", point.update);
  visit("branch_examples", point.examples);
  visit("branch_gradients", point.gradients);
  visit("branch_stream_start", point.stream_start);
  visit("branch_draws_start", point.draws_start);
  visit("branch_learning_rate", point.learning_rate);
  visit("branch_train_loss", point.train_loss);
  visit("branch_same_start", point.same_start);
  visit("branch_parent", point.parent);
  visit("branch_label", point.label);
  visit("branch_sha256", point.sha256);
}

// 3 / (1 - 0.9) are 30, not the 30.000000000000007 that would be 31.
int64_t rounded_up(double updates) { return static_cast<int64_t>(std::ceil(updates * (1 - 1e-12))); }

// The first update that starts at or past so many examples.
int64_t update_at(const BatchSchedule& batches, int64_t examples) {
  int64_t update = 0;
  for (const auto& [size, updates] : batches.phases()) {
    const int64_t needed = (examples + size - 1) / size;
    if (needed <= updates) return update + needed;
    examples -= updates * size;
    update += updates;
  }
  return update;  // past the end
}

}  // namespace

void bind_options(OptionTable& table, BranchOptions& o) {
  table
      .add("from", o.from, anything(),
           "parent: conditions that name a run of the study, or the path of a checkpoint; empty: no branch")
      .quiet_default();
  table.add("at", o.at, anything(), "label of the parent's checkpoint: u000400, loss-1.5, end")
      .quiet_default();
  table
      .add("optimizer", o.optimizer, one_of({"kept", "reset", "rescaled"}),
           "the parent's optimiser state as it is, none of it, or with buffers that hold the learning rate "
           "multiplied to the new one")
      .quiet_default();
  table
      .add("stream", o.stream, one_of({"continued", "restarted"}),
           "examples, augmentation and dropout masks: from the parent's position on, or from the start")
      .quiet_default();
  table
      .add("anneal", o.anneal, between(0, 1),
           "the rate falls linearly to zero over this share of the parent's updates, and the run ends there; "
           "0: "
           "it doesn't")
      .quiet_default();
  table
      .add("updates", o.updates, between(0, kMostExamples),
           "further updates; 0: the run's own protocol decides")
      .quiet_default();
  table
      .add("rate_factor", o.rate_factor, greater_than(0),
           "the learning rate times this; the parent is the run with the rate without it")
      .quiet_default();
  table.add("path", o.path, anything(), "the parent's checkpoint where it lies outside of the study")
      .execution()
      .quiet_default();
  table.add("setting", o.setting, anything(), "the parent's config_id; filled in by the study")
      .execution()
      .quiet_default();
}

void check_branch(const BranchOptions& o, double overlap) {
  if (!o.exists()) return;
  if (o.anneal > 0 && o.updates > 0)
    throw ConfigError(fmt::format(
        "branch.anneal = {:g} and branch.updates = {} exclude each other: both say where the branch ends",
        o.anneal, o.updates));
  if (overlap > 0 && (o.optimizer != "kept" || o.stream != "continued"))
    throw ConfigError(
        fmt::format("branch.optimizer = \"{}\" and branch.stream = \"{}\" need a method without overlap of "
                    "batches: its pairs belong to consecutive batches",
                    o.optimizer, o.stream));
}

void save_branch_point(const BranchPoint& point, std::map<std::string, OptionValue>& progress) {
  visit_branch_fields(point, [&](const char* name, const auto& field) { progress[name] = field; });
}

std::optional<BranchPoint> branch_point_of(const Checkpoint& checkpoint) {
  if (!checkpoint.progress.count("branch_update")) return std::nullopt;
  BranchPoint point;
  visit_branch_fields(point, [&](const char* name, auto& field) {
    const auto found = checkpoint.progress.find(name);
    using Field = std::decay_t<decltype(field)>;
    if (found == checkpoint.progress.end() || !std::holds_alternative<Field>(found->second))
      throw IoError(fmt::format("checkpoint: progress has no \"{}\", or one of the wrong type", name));
    field = std::get<Field>(found->second);
  });
  return point;
}

int64_t anneal_length(double share, int64_t updates_so_far, double momentum) {
  if (share == 0) return 0;
  return std::max(
      {int64_t{1}, rounded_up(share * static_cast<double>(updates_so_far)), rounded_up(3 / (1 - momentum))});
}

Course::Course(const TrainOptions& options, const BatchSchedule& batches, const BranchPoint* point,
               int64_t anneal_updates)
    : scheduled_(batches.updates()), total_(scheduled_) {
  if (point == nullptr) return;
  first_ = point->update;
  position_ = options.ends_by(Protocol::updates) ? point->update : update_at(batches, point->examples);
  anneal_ = anneal_updates;
  if (anneal_ > 0) {
    total_ = first_ + anneal_;
  } else if (options.branch.updates > 0) {
    total_ = first_ + options.branch.updates;
  } else if (position_ < scheduled_) {
    total_ = first_ + scheduled_ - position_;
  } else {
    throw ConfigError(fmt::format(
        "branch.at = \"{}\": nothing is left of the budget ({} updates) after the parent's {} updates "
        "and {} examples: set branch.updates or branch.anneal, or a larger budget",
        options.branch.at, scheduled_, point->update, point->examples));
  }
}

int64_t Course::position(int64_t update) const {
  return std::min(position_ + update - first_, scheduled_ - 1);
}

double Course::rate(const RateSchedule& rates, int64_t update) const {
  if (anneal_ == 0) return rates.at(position(update));
  const double passed = static_cast<double>(update - first_) / static_cast<double>(anneal_);
  return rates.at(position(first_)) * (1 - passed);
}

}  // namespace basin
