#include "runs/train.h"

#include <csignal>
#include <filesystem>

#include "core/error.h"
#include "core/file_lock.h"
#include "core/files.h"
#include "core/interrupt.h"
#include "core/provenance.h"
#include "core/seed.h"
#include "data/class_order.h"
#include "data/load.h"
#include "io/checkpoint.h"
#include "io/run_file.h"
#include "io/status_file.h"
#include "optim/exclusion.h"
#include "optim/registry.h"
#include "optim/scaling_rule.h"
#include "ranks/worker_links.h"
#include "runs/branch.h"
#include "runs/ended.h"
#include "runs/folder.h"
#include "runs/given_order.h"
#include "runs/given_ratios.h"
#include "runs/parts.h"
#include "trainers/data_identity.h"
#include "trainers/recorder.h"
#include "trainers/tables.h"
#include "trainers/trainer.h"
#include "trainers/workers/stale_options.h"

namespace basin {
namespace {

namespace fs = std::filesystem;

/// What the exclusion lists came to for this network: the names of the parameters, next to the options.
void add_exclusions(RunHeader& header, const Optimizer& optimizer) {
  std::vector<std::string> without_decay, without_ratio;
  for (size_t i = 0; i < optimizer.parameter_table().size(); ++i) {
    const Treatment& treatment = optimizer.treatment_table()[i];
    const std::string& name = optimizer.parameter_table()[i].name;
    if (treatment.decay == 0) without_decay.push_back(name);
    if (!treatment.trust) without_ratio.push_back(name);
  }
  header.options.emplace_back("without_weight_decay", without_decay);
  if (optimizer.has_trust_ratios()) header.options.emplace_back("without_trust_ratio", without_ratio);
}

/// And the lists of factors: "norm1.bias=64" for each factor that is not 1.
void add_factors(RunHeader& header, const RunOptions& options, const Optimizer& optimizer) {
  const OptimizerEntry& method = find_entry(optimizer_registry(), options.optimizer, "optimizer");
  if (!method.factors) return;
  const FactorLists lists = method.factors(options.optimizers.at(options.optimizer));
  for (const auto& [list, record] :
       {std::pair{lists.of_rate, "learning_rate_factors"}, {lists.of_decay, "weight_decay_factors"}}) {
    const std::vector<double> factors = factors_of(optimizer.parameter_table(), list);
    std::vector<std::string> named;
    for (size_t i = 0; i < factors.size(); ++i)
      if (factors[i] != 1)
        named.push_back(fmt::format("{}={}", optimizer.parameter_table()[i].name, factors[i]));
    header.options.emplace_back(record, named);
  }
}

/// What the rules for an optimiser's own options came to at this run's batch size.
void add_scaled_options(RunHeader& header, const RunOptions& options) {
  const OptimizerEntry& method = find_entry(optimizer_registry(), options.optimizer, "optimizer");
  const std::unique_ptr<AnyOptions> scaled = scaled_optimizer_options(options);
  const ScheduleOptions& rules = options.schedule;
  if (scales_moments(rules.scaling_rule)) {
    const MomentOptions& moments = *method.moments(*scaled);
    header.options.emplace_back("scaled_beta1", moments.beta1);
    header.options.emplace_back("scaled_beta2", moments.beta2);
    header.options.emplace_back("scaled_eps", moments.eps);
  }
  if (rules.beta2_rule != "none") header.options.emplace_back("scaled_beta2", *method.beta2(*scaled));
  if (rules.decay_rule != "none")
    header.options.emplace_back("scaled_weight_decay", *method.weight_decay(*scaled));
}

/// What the rules of the learning rate came to at this run's batch size.
void add_rates(RunHeader& header, const RunOptions& options, const Dataset& data, const Optimizer& optimizer,
               const RateSchedule& rates) {
  header.options.emplace_back("peak_learning_rate", rates.peak());
  header.options.emplace_back("warmup_updates", rates.warmup_updates());
  if (optimizer_traits(options).steps_along_gradients && options.train.batch_milestones.empty()) {
    const double n = static_cast<double>(data.train.size());
    const double b = static_cast<double>(options.train.batch_size);
    header.options.emplace_back("sgd_noise_scale", rates.peak() * optimizer.gain() * (n / b));
  }
  add_scaled_options(header, options);
}

/// Which bytes a branch began from: its name has the parent's, and these could be others.
void add_parent(RunHeader& header, const std::optional<BranchStart>& branch) {
  if (!branch) return;
  header.provenance.emplace_back("branch_parent", branch->point.parent + "/" + branch->point.label);
  header.provenance.emplace_back("branch_parent_sha256", branch->point.sha256);
}

RunHeader header_of(const RunOptions& options, const Dataset& data, const Model& model,
                    const Optimizer& optimizer, const Trainer& trainer) {
  RunHeader header;
  header.run_id = options.run_id();
  header.config_id = options.config_id();
  header.config = options.resolved();
  header.created_utc = utc_now();
  const OptionView table = options.defining_table();
  for (const Option& option : table) header.options.emplace_back(option.key, option.get());
  add_exclusions(header, optimizer);
  add_factors(header, options, optimizer);
  add_rates(header, options, data, optimizer, trainer.rates());
  header.provenance = collect_provenance();
  header.provenance.emplace_back("execution", trainer.execution());
  const RankGroup& ranks = trainer.setup().ranks;
  if (!ranks.is_alone()) header.provenance.emplace_back("ranks", std::to_string(ranks.size()));
  add_parent(header, trainer.setup().branch);
  const auto master = static_cast<uint64_t>(options.train.seed);
  header.rng.emplace_back("master_seed", options.train.seed);
  for (const char* stream : {"init", "data-order", "augmentation", "flip", "cutout", "dropout", "probe"}) {
    header.rng.emplace_back(std::string("seed_") + stream, std::to_string(derive_seed(master, stream)));
  }
  header.data = data_attributes(data);
  header.parameters = parameter_rows(model.parameter_table());
  return header;
}

// The status of a run that is done, or nothing. IoError where it was done on other data than lies there now.
std::optional<RunState> final_status(const RunOptions& options, const std::string& folder) {
  const RunState known = status_of(folder, options.run_id()).status;
  if (!is_final(known) && known != RunState::queued) return std::nullopt;
  const std::optional<RunRecord> record = ended_record(folder);
  if (!record) return std::nullopt;
  remove_states(folder);
  check_same_data(folder + "/run.h5", record->header.data, data_attributes(load_dataset(options.data)));
  return record->status;
}

// Before there is a Recorder to say so. What an earlier attempt wrote of where it stands remains.
void leave_failed(const std::string& folder, const std::string& run_id, const std::string& message) {
  RunStatus status = status_of(folder, run_id);
  status.status = RunState::failed;
  status.message = message;
  status.updated_utc = utc_now();
  try {
    write_status(folder + "/status.json", status);
  } catch (const std::exception&) {
    return;  // the first fault is the one to tell
  }
}

c10::Device device_for(const RunOptions& options, const RankGroup& ranks) {
  return ranks.use_device(apply_runtime(options.runtime));
}

Dataset same_data(const RunOptions& options, const RankGroup& ranks) {
  Dataset data = load_dataset(options.data);
  std::string read;
  for (const auto& [name, value] : data_attributes(data))
    read += fmt::format("{} = {}, ", name, to_toml(value));
  ranks.agree("the data", read);
  return data;
}

/// Whether ranks are a server and its workers, not processes that share each batch. ConfigError where they are too many or too few.
bool are_workers(const RunOptions& options, const RankGroup& ranks) {
  const auto& parallel = options.train.hook<StaleGradientOptions>();
  if (!parallel.real()) return false;
  if (ranks.size() != parallel.workers + 1) throw ConfigError(needs_ranks(parallel, ranks.size()));
  return true;
}

/// What a run is made of; each part refers to those before it.
struct RunParts {
  RunParts(const RunOptions& options, const std::string& folder, const RankGroup& ranks)
      : device(device_for(options, ranks)),
        data(same_data(options, ranks)),
        order(given_order(options, folder, ranks)),
        model(build_model(options, data, scalar_type(options.train.dtype), device)),
        optimizer(build_optimizer(options, *model)) {
    if (model->has_batch_statistics()) refuse_order_by_class(data, batch_plan_of(options).ghost_batch);
    const bool with_workers = are_workers(options, ranks);
    if (with_workers) {
      const at::ScalarType dtype = scalar_type(options.train.dtype);
      if (ranks.is_first()) workers = std::make_unique<WorkerLinks>(ranks, model->parameter_count(), dtype);
      if (!ranks.is_first()) server = std::make_unique<ServerLink>(ranks, model->parameter_count(), dtype);
    }
    trainer = std::make_unique<Trainer>(
        TrainSetup{options.train, options.schedule, options.data, data, model, *optimizer, device,
                   options.runtime.cuda_graph, branch_start(options, folder, data_attributes(data), *model),
                   with_workers ? RankGroup::alone() : ranks, workers.get(), server != nullptr, order});
    header = header_of(options, data, *model, *optimizer, *trainer);
    if (workers) header.provenance.emplace_back("workers", std::to_string(workers->count()));
    if (order) header.provenance.emplace_back("order_sha256", order->sha256);
  }
  RunParts(const RunParts&) = delete;
  RunParts& operator=(const RunParts&) = delete;

  c10::Device device;
  Dataset data;
  std::shared_ptr<const ArrivalList> order;  // of arrivals, where it is another run's
  std::shared_ptr<Model> model;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<WorkerLinks> workers;  // of a parameter server
  std::unique_ptr<ServerLink> server;    // of one of its workers
  std::unique_ptr<Trainer> trainer;
  RunHeader header;
};

/// What make() makes, or its fault in status.json and on.
template <class F>
auto made_or_failed(const RunOptions& options, const std::string& folder, const F& make) {
  try {
    return make();
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& error) {
    leave_failed(folder, options.run_id(), one_line(error));
    throw;
  }
}

TrainResult train(RunParts& run, const std::string& folder, bool progress, const RankGroup& ranks) {
  Recorder recorder(folder, run.header, *run.trainer, progress);
  run.trainer->observe(recorder);
  try {
    recorder.resume_or_start();
    ranks.broadcast(recorder.resumed_from());
    TrainResult result = run.trainer->run();
    recorder.conclude(result);
    if (run.workers && run.workers->finish(result.status == RunState::interrupted)) ranks.part();
    return result;
  } catch (const RankLost& lost) {
    recorder.fail(one_line(lost), RunState::interrupted);
    throw;
  } catch (const Interrupted& signal) {  // heard of while another rank was waited for
    recorder.fail(one_line(signal), RunState::interrupted);
    throw;
  } catch (const std::exception& error) {
    recorder.fail(one_line(error));
    throw;
  }
}

constexpr char kTrain[] = "train";

/// A branch that is resumed has its parent's buffers, which no order brings, in the checkpoint alone; other runs make them anew.
TrainResult work(RunParts& run, const std::string& checkpoint, const RankGroup& ranks) {
  if (run.trainer->setup().branch && !checkpoint.empty())
    restore_model(*run.model, read_checkpoint(checkpoint));
  try {
    run.trainer->work_for(*run.server);
  } catch (const RankLost&) {
    throw;
  } catch (const std::exception& error) {
    run.server->fail(one_line(error));
    throw;
  }
  if (run.server->parts()) ranks.part();
  return {};
}

/// What the other ranks do while rank 0 trains and writes.
TrainResult follow(const RunOptions& options, const std::string& folder, const RankGroup& ranks) {
  const std::string word = ranks.broadcast(std::string());
  if (word != kTrain) return {parse_run_state(word, "rank 0"), {}, {}, {}, {}};
  RunParts run(with_given_ratios(options, folder), folder, ranks);
  const std::string checkpoint = ranks.broadcast(std::string());
  if (run.server) return work(run, checkpoint, ranks);
  if (!checkpoint.empty()) run.trainer->restore(read_checkpoint(checkpoint));
  return run.trainer->run();
}

/// The run's status; nobody is waited for where it is a signal.
RunState state_after(const TrainResult& result, const RankGroup& ranks) {
  if (result.status != RunState::interrupted) return result.status;
  if (ranks.is_first()) fmt::print(stderr, "interrupted; the same command resumes from here\n");
  throw_if_interrupted();
  if (!ranks.is_alone()) throw Interrupted(SIGTERM);  // another rank saw it
  return result.status;
}

}  // namespace

void require_inputs(const RunOptions& options) {
  apply_runtime(options.runtime);
  load_dataset(options.data);
}

RunState train_run(const RunOptions& options, const std::string& folder, const RankGroup& ranks) {
  check(options);
  are_workers(options, ranks);
  ranks.agree("the study", options.run_id());
  if (!ranks.is_first()) return state_after(follow(options, folder, ranks), ranks);
  make_folders(folder);
  const FileLock lock(folder + "/lock", folder);
  if (const std::optional<RunState> status = final_status(options, folder)) {
    ranks.broadcast(std::string(to_string(*status)));
    return *status;
  }
  const RunOptions whole =
      made_or_failed(options, folder, [&] { return with_given_ratios(options, folder); });
  const std::unique_ptr<RunParts> run = made_or_failed(options, folder, [&] {
    write_file_atomically(folder + "/config.toml", whole.resolved());
    ranks.broadcast(std::string(kTrain));
    return std::make_unique<RunParts>(whole, folder, ranks);
  });
  return state_after(train(*run, folder, options.runtime.progress, ranks), ranks);
}

}  // namespace basin
