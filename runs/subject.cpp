#include "runs/subject.h"

#include "core/device.h"
#include "core/error.h"
#include "core/interrupt.h"
#include "core/seed.h"
#include "data/load.h"
#include "data/network_inputs.h"
#include "hessian/outside/line_channel.h"
#include "models/symmetries.h"
#include "models/twin.h"
#include "probes/registry.h"
#include "runs/checkpoints.h"
#include "runs/parts.h"
#include "trainers/batch_schedule.h"
#include "trainers/branch.h"
#include "trainers/data_identity.h"
#include "trainers/trainer.h"

namespace basin {
namespace {

/// Flat, in the model's order; undefined where the run keeps no checkpoint "start".
at::Tensor initial_weights(const std::string& run_folder, const Model& model) {
  const std::string path = checkpoint_path(run_folder, "start");
  if (!std::filesystem::exists(path)) return {};
  const Checkpoint start = read_checkpoint(path);
  std::vector<at::Tensor> flat;
  for (const ParameterInfo& parameter : model.parameter_table()) {
    const auto stored = std::find_if(start.parameters.begin(), start.parameters.end(),
                                     [&](const ParameterInfo& p) { return p.name == parameter.name; });
    if (stored == start.parameters.end()) throw IoError(path + ": no parameter \"" + parameter.name + "\"");
    flat.push_back(stored->tensor.flatten());
  }
  return at::cat(flat);
}

/// The twin of flat weights in the model's order.
at::Tensor twin_of(const Model& model, const at::Tensor& flat) {
  if (!flat.defined()) return flat;
  std::vector<at::Tensor> twin;
  for (const auto& [name, tensor] : equal_norm_twin(model, named_views(model, flat)))
    twin.push_back(tensor.flatten());
  return at::cat(twin).to(flat.scalar_type());
}

double learning_rate_at(const Checkpoint& checkpoint) {
  const auto found = checkpoint.progress.find("learning_rate");
  return found == checkpoint.progress.end() ? NAN : std::get<double>(found->second);
}

int64_t batch_size_at(const Checkpoint& checkpoint, const RunOptions& options, int64_t train_examples) {
  const BatchSchedule batches(options.train, batch_plan_of(options), train_examples);
  const std::optional<BranchPoint> point = branch_point_of(checkpoint);
  const int64_t annealed =
      options.train.branch.anneal > 0 ? 1 : 0;  // over how many updates doesn't matter here
  const Course course(options.train, batches, point ? &*point : nullptr, annealed);
  return batches.batch_size(std::max<int64_t>(course.position(checkpoint.update - 1), 0));
}

}  // namespace

Subject::Subject(const std::string& run_folder, const Checkpoint& checkpoint, const ProbePlan& plan,
                 at::Device device)
    : run_folder_(run_folder),
      options_(
          run_options_from(parse_toml(checkpoint.config, "config of checkpoint " + checkpoint.label), {})),
      plan_(plan),
      device_(device),
      data_(load_dataset(options_.data)) {
  check_same_data("checkpoint " + checkpoint.label, checkpoint.data, data_attributes(data_));
  index_ = hashed_subset(data_.train, plan_.subset);
  subset_hash_ = basin::subset_hash(data_.train, index_);
}

Prepared Subject::prepare(const Checkpoint& checkpoint, bool twin) const {
  const at::ScalarType dtype = scalar_type(plan_.dtype);
  const std::shared_ptr<Model> model = build_model(options_, data_, dtype, device_);
  restore_model(*model, checkpoint);
  if (twin) become_equal_norm_twin(*model);
  const at::Tensor inputs = network_inputs(data_, data_.train, index_, dtype, device_);
  const at::Tensor labels = data_.train.labels.index_select(0, index_).to(device_);
  auto objective =
      std::make_unique<Objective>(model, loss_kind(options_.train.loss), inputs, labels, plan_.micro_batch,
                                  plan_.graph_memory * kMebibyte, plan_.fold_norm);
  const at::Tensor initial = initial_weights(run_folder_, *model);
  // Weights of a script as they are have no rate: no optimiser of theirs is known. Nor has a mean of chains' weights one: each chain does.
  const bool has_optimizer =
      !twin && !std::isnan(learning_rate_at(checkpoint)) && !batch_plan_of(options_).shards;
  return {std::move(objective), has_optimizer ? optimizer_at(checkpoint, *model, dtype) : nullptr,
          learning_rate_at(checkpoint), batch_size_at(checkpoint, options_, train_examples()),
          twin ? twin_of(*model, initial) : initial};
}

ProbeContext Subject::context(const Prepared& prepared) const {
  ProbeContext context{*prepared.objective,   seed(),  train_examples(),
                       subset_hash_,          "train", prepared.optimizer.get(),
                       prepared.learning_rate};
  context.batch_size = prepared.batch_size;
  context.initial_weights = prepared.initial_weights;
  return context;
}

uint64_t Subject::seed() const { return derive_seed(static_cast<uint64_t>(options_.train.seed), "probe"); }

int64_t Subject::examples_of(const ProbePlan& plan) const {
  return plan.subset > 0 ? std::min(plan.subset, train_examples()) : train_examples();
}

ProbeAttributes Subject::given_settings(const Checkpoint& checkpoint, const std::string& probe) const {
  return {{"update", checkpoint.update},
          {"checkpoint_sha256", content_hash(checkpoint)},
          {"version", find_entry(probe_registry(), probe, "probe").version},
          {"train_examples", train_examples()},
          {"subset_hash", subset_hash_},
          {"bn_mode", std::string(model_traits(options_).batch_statistics ? "running" : "none")},
          {"seed", std::to_string(seed())}};
}

std::unique_ptr<Optimizer> Subject::optimizer_at(const Checkpoint& checkpoint, const Model& model,
                                                 at::ScalarType dtype) const {
  NamedTensors state = checkpoint.optimizer;
  for (auto& [name, tensor] : state)
    if (tensor.is_floating_point()) tensor = tensor.to(dtype);
  std::unique_ptr<Optimizer> optimizer = build_optimizer(options_, model);
  optimizer->load_state(state);
  return optimizer;
}

ProbeResult run_or_fail(const std::string& probe, const AnyOptions& options, const ProbeContext& context) {
  try {
    return find_entry(probe_registry(), probe, "probe").make(options)->run(context);
  } catch (const Interrupted&) {
    throw;
  } catch (const PartnerError&) {
    throw;
  } catch (const RankLost&) {
    throw;
  } catch (const std::exception& error) {
    ProbeResult result;
    result.probe = probe;
    result.status = ProbeStatus::failed;
    result.message = one_line(error);
    return result;
  }
}

}  // namespace basin
