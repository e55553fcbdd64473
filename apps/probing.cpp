#include "apps/probing.h"

#include "apps/arguments.h"
#include "apps/run_parts.h"
#include "core/error.h"
#include "core/files.h"
#include "core/interrupt.h"
#include "core/provenance.h"
#include "core/seed.h"
#include "hessian/objective.h"
#include "io/checkpoint.h"
#include "io/probe_file.h"
#include "probes/registry.h"
#include "trainers/tensor_norms.h"
#include "trainers/trainer.h"

namespace basin {
namespace {

namespace fs = std::filesystem;
using Attributes = std::vector<std::pair<std::string, OptionValue>>;

std::string checkpoint_path(const std::string& run_folder, const std::string& label) {
  return run_folder + "/ckpt/" + label + ".h5";
}

// Labels that plan.at asks for: "all", "loss" (every level) or a label of its own.
std::vector<std::string> chosen_labels(const std::string& run_folder, const ProbePlan& plan) {
  std::vector<std::string> chosen;
  for (const std::string& label : checkpoint_labels(run_folder)) {
    const bool wanted = std::any_of(plan.at.begin(), plan.at.end(), [&](const std::string& at) {
      return at == "all" || at == label || (at == "loss" && label.rfind("loss-", 0) == 0);
    });
    if (wanted) chosen.push_back(label);
  }
  return chosen;
}

bool all_finite(const Checkpoint& checkpoint) {
  return std::all_of(checkpoint.parameters.begin(), checkpoint.parameters.end(), [](const ParameterInfo& parameter) {
    return at::isfinite(parameter.tensor).all().item<bool>();
  });
}

double weight_norm(const Checkpoint& checkpoint) {
  double sum = 0;
  for (const ParameterInfo& parameter : checkpoint.parameters) sum += squared_norm(parameter.tensor);
  return std::sqrt(sum);
}

/// One run's data, read once, and what probes look at: a network at a checkpoint on a subset of the training split.
class Subject {
 public:
  Subject(const Checkpoint& checkpoint, const ProbeRequest& request, at::Device device)
      : options_(run_options_from(parse_toml(checkpoint.config, "config of checkpoint " + checkpoint.label), {})),
        plan_(request.plan), device_(device), data_(load_dataset(options_.data)) {
    index_ = hashed_subset(data_.train, plan_.subset);
    subset_hash_ = basin::subset_hash(data_.train, index_);
  }

  std::unique_ptr<Objective> objective(const Checkpoint& checkpoint) const {
    const at::ScalarType dtype = scalar_type(plan_.dtype);
    const std::shared_ptr<Model> model = build_model(options_, data_, dtype, device_);
    restore_model(*model, checkpoint);
    const at::Tensor inputs = network_inputs(data_, data_.train, index_, dtype, device_);
    const at::Tensor labels = data_.train.labels.index_select(0, index_).to(device_);
    return std::make_unique<Objective>(model, loss_kind(options_.train.loss), inputs, labels, plan_.micro_batch,
                                       plan_.retain_graph);
  }

  uint64_t seed() const { return derive_seed(static_cast<uint64_t>(options_.train.seed), "probe"); }
  int64_t train_examples() const { return data_.train.size(); }
  const std::string& subset_hash() const { return subset_hash_; }

  /// What a measurement hangs on; equal settings give equal numbers.
  Attributes settings(const Checkpoint& checkpoint, const std::string& probe, const OptionSets& probe_options) const {
    Attributes settings = {{"update", checkpoint.update},
                           {"set", std::string("train")},
                           {"n_examples", index_.numel()},
                           {"train_examples", train_examples()},
                           {"subset_hash", subset_hash_},
                           {"bn_mode", std::string(checkpoint.buffers.empty() ? "none" : "running")},
                           {"dtype", plan_.dtype},
                           {"seed", std::to_string(seed())},
                           {"tf32", false}};
    OptionSets copy = probe_options;
    OptionTable table;
    copy.bind_only(table, probe);
    for (const Option& option : table.options()) settings.emplace_back("option." + option.key, option.get());
    return settings;
  }

 private:
  RunOptions options_;
  ProbePlan plan_;
  at::Device device_;
  Dataset data_;
  at::Tensor index_;
  std::string subset_hash_;
};

bool same_settings(const ProbeRecord& record, const Checkpoint& checkpoint, const Attributes& settings) {
  if (record.status == "failed" || record.run_id != checkpoint.run_id) return false;
  return std::all_of(settings.begin(), settings.end(), [&](const auto& setting) {
    return std::any_of(record.attributes.begin(), record.attributes.end(), [&](const auto& stored) {
      return stored.first == setting.first && to_toml(stored.second) == to_toml(setting.second);
    });
  });
}

// A file that can't be read is measured again.
bool already_measured(const std::string& path, const Checkpoint& checkpoint, const Attributes& settings) {
  if (!fs::exists(path)) return false;
  try {
    return same_settings(read_probe_file(path), checkpoint, settings);
  } catch (const Error&) {
    return false;
  }
}

ProbeResult without_result(const std::string& probe, const std::string& status, const std::string& message) {
  ProbeResult result;
  result.probe = probe;
  result.status = status;
  result.message = message;
  return result;
}

ProbeResult measure(const std::string& probe, const ProbeRequest& request, const Subject& subject,
                    Objective& objective) {
  try {
    const ProbeEntry& entry = find_entry(probe_registry(), probe, "probe");
    const ProbeContext context{objective, subject.seed(), subject.train_examples(), subject.subset_hash(), "train"};
    return entry.make(request.probe_options.at(probe))->run(context);
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& error) {
    return without_result(probe, "failed", one_line(error));
  }
}

ProbeRecord record_of(const ProbeResult& result, const Checkpoint& checkpoint, Attributes attributes) {
  ProbeRecord record;
  record.run_id = checkpoint.run_id;
  record.config_id = checkpoint.config_id;
  record.probe = result.probe;
  record.checkpoint = checkpoint.label;
  record.status = result.status;
  record.message = result.message;
  // A probe may say more precisely what the settings say; a name stands once.
  for (const auto& attribute : result.attributes) {
    std::erase_if(attributes, [&](const auto& known) { return known.first == attribute.first; });
    attributes.push_back(attribute);
  }
  attributes.emplace_back("seconds", result.seconds);
  record.attributes = std::move(attributes);
  record.provenance = collect_provenance();
  for (const Quantity& q : result.quantities) {
    record.quantities.push_back({q.name, q.definition, q.units, q.long_name, q.uncertainty_kind, q.status, q.value,
                                 q.uncertainty, q.ci_low, q.ci_high});
  }
  return record;
}

/// All probes on one checkpoint; the network is built when the first probe needs it.
class CheckpointProbes {
 public:
  CheckpointProbes(const std::string& run_folder, const std::string& label, Checkpoint checkpoint,
                   const ProbeRequest& request, const Subject& subject)
      : run_folder_(run_folder), label_(label), checkpoint_(std::move(checkpoint)), request_(request),
        subject_(subject), finite_(all_finite(checkpoint_)) {}

  ProbeOutcome run(const std::string& probe) {
    ProbeOutcome outcome{label_, probe, "", "", run_folder_ + "/probes/" + label_ + "." + probe + ".h5", 0, false};
    Attributes attributes = subject_.settings(checkpoint_, probe, request_.probe_options);
    if (!request_.force && already_measured(outcome.path, checkpoint_, attributes)) {
      outcome.skipped = true;
      outcome.status = read_probe_file(outcome.path).status;
      return outcome;
    }
    const ProbeResult result = finite_ ? measured(probe) : without_result(probe, "nonfinite", "parameters are not finite");
    describe(attributes);
    write_probe_file(outcome.path, record_of(result, checkpoint_, attributes));
    outcome.status = result.status;
    outcome.message = result.message;
    outcome.seconds = result.seconds;
    return outcome;
  }

 private:
  ProbeResult measured(const std::string& probe) {
    if (!objective_) {
      objective_ = subject_.objective(checkpoint_);
      subset_loss_ = objective_->loss();
    }
    return measure(probe, request_, subject_, *objective_);
  }

  // What a measurement doesn't hang on, but its reader wants.
  void describe(Attributes& attributes) const {
    attributes.emplace_back("train_loss", subset_loss_);
    attributes.emplace_back("weight_norm", weight_norm(checkpoint_));
    attributes.emplace_back("micro_batch", request_.plan.micro_batch);
    for (const char* key : {"train_loss", "level"}) {
      const auto found = checkpoint_.progress.find(key);
      if (found == checkpoint_.progress.end()) continue;
      attributes.emplace_back(std::string(key) == "level" ? "loss_level" : "full_train_loss", found->second);
    }
  }

  std::string run_folder_, label_;
  Checkpoint checkpoint_;
  const ProbeRequest& request_;
  const Subject& subject_;
  bool finite_;
  std::unique_ptr<Objective> objective_;
  double subset_loss_ = NAN;
};

}  // namespace

std::vector<std::string> checkpoint_labels(const std::string& run_folder) {
  const fs::path folder = fs::path(run_folder) / "ckpt";
  if (!fs::is_directory(folder)) throw IoError(run_folder + ": not a run folder (it has no ckpt/)");
  std::vector<std::pair<int64_t, std::string>> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string label = entry.path().stem().string();
    if (entry.path().extension() != ".h5" || label == "latest" || label == "previous") continue;
    found.emplace_back(read_checkpoint(entry.path().string()).update, label);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> labels;
  for (const auto& [update, label] : found) labels.push_back(label);
  return labels;
}

std::vector<ProbeOutcome> probe_run(const std::string& run_folder, const ProbeRequest& request) {
  std::vector<ProbeOutcome> outcomes;
  const std::vector<std::string> labels = chosen_labels(run_folder, request.plan);
  if (labels.empty() || request.plan.run.empty()) return outcomes;
  make_folders(run_folder + "/probes");
  const FileLock lock(run_folder + "/probes/lock", run_folder + "/probes");
  const c10::Device device = apply_runtime(request.runtime);
  std::unique_ptr<Subject> subject;
  for (const std::string& label : labels) {
    Checkpoint checkpoint = read_checkpoint(checkpoint_path(run_folder, label));
    if (!subject) subject = std::make_unique<Subject>(checkpoint, request, device);
    CheckpointProbes probes(run_folder, label, std::move(checkpoint), request, *subject);
    for (const std::string& probe : request.plan.run) {
      throw_if_interrupted();  // what is measured is on disk
      outcomes.push_back(probes.run(probe));
    }
  }
  return outcomes;
}

}  // namespace basin
