#include "runs/probing.h"

#include "core/build_info.h"
#include "core/error.h"
#include "core/file_lock.h"
#include "core/files.h"
#include "core/interrupt.h"
#include "core/math/tensor_norms.h"
#include "io/checkpoint.h"
#include "io/probe_file.h"
#include "runs/checkpoints.h"
#include "runs/folder.h"
#include "runs/probe_record.h"
#include "runs/probe_settings.h"
#include "runs/subject.h"

namespace basin {
namespace {

namespace fs = std::filesystem;

double weight_norm(const Checkpoint& checkpoint) {
  double sum = 0;
  for (const ParameterInfo& parameter : checkpoint.parameters) sum += squared_norm(parameter.tensor);
  return std::sqrt(sum);
}

/// Where a search keeps its state on the way.
struct SearchState {
  std::string path, key;
};

constexpr double kFaultSeconds = 30;  // in which a fault that all ranks meet has come to all

// A file that can't be read is measured again.
bool already_measured(const std::string& path, const Checkpoint& checkpoint,
                      const ProbeAttributes& settings) {
  if (!fs::exists(path)) return false;
  try {
    return same_settings(read_probe_file(path), checkpoint.run_id, settings);
  } catch (const Error&) {
    return false;
  }
}

ProbeResult measure(const std::string& probe, const ProbeRequest& request, const Subject& subject,
                    const Prepared& prepared, const SearchState& search) {
  const RankGroup& ranks = prepared.objective->ranks();
  ProbeContext context = subject.context(prepared);
  context.state_path = search.path;
  context.state_key = search.key;
  context.keeps_state = ranks.is_first();
  ProbeResult result = run_or_fail(probe, request.probe_options.at(probe), context);
  if (result.status == ProbeStatus::failed && !ranks.all_say(result.message, kFaultSeconds))
    throw Error(1, probe + ": " + result.message);
  return result;
}

/// What the twin's numbers stand under: "end@twin".
std::string twin_label(const std::string& label) { return label + "@twin"; }

/// All probes on one checkpoint, or on its twin; the network is built when the first probe needs it.
class CheckpointProbes {
 public:
  CheckpointProbes(const std::string& run_folder, const std::string& label, Checkpoint checkpoint,
                   const ProbeRequest& request, const std::optional<RunOptions>& study,
                   const Subject& subject, bool twin, const RankGroup& ranks)
      : run_folder_(run_folder),
        label_(label),
        twin_(twin),
        checkpoint_(std::move(checkpoint)),
        request_(request),
        study_(study),
        subject_(subject),
        ranks_(ranks) {}

  ProbeOutcome run(const std::string& probe) {
    ProbeAttributes attributes = chosen(probe, request_.plan, request_.probe_options);
    const std::string fingerprint = settings_fingerprint(attributes);
    std::optional<std::string> studys;
    if (study_) studys = settings_fingerprint(chosen(probe, study_->probes, study_->probe_options));
    ProbeOutcome outcome{.checkpoint = label_,
                         .probe = probe,
                         .path = probe_path(run_folder_, label_, probe, fingerprint, studys)};
    for (auto& setting : subject_.given_settings(checkpoint_, probe))
      attributes.push_back(std::move(setting));
    const bool first = ranks_.is_first();
    const bool known = first && !request_.force && already_measured(outcome.path, checkpoint_, attributes);
    if (ranks_.any(known)) {
      outcome.skipped = true;
      if (first) outcome.status = read_probe_file(outcome.path).status;
      return outcome;
    }
    prepare();
    const SearchState search = search_of(outcome.path, attributes);
    const ProbeResult result = measure(probe, request_, subject_, prepared_, search);
    if (!first) return outcome;
    attributes.emplace_back("settings", fingerprint);
    describe(attributes);
    if (twin_) attributes.emplace_back("twin", std::string("equal_norm"));
    ProbeRecord record = record_of(result, std::move(attributes));
    record.run_id = checkpoint_.run_id;
    record.config_id = checkpoint_.config_id;
    record.checkpoint = label_;
    write_probe_file(outcome.path, record);
    outcome.status = result.status;
    outcome.message = result.message;
    outcome.seconds = result.seconds;
    return outcome;
  }

 private:
  ProbeAttributes chosen(const std::string& probe, const ProbePlan& plan,
                         const OptionSets& probe_options) const {
    return chosen_settings(probe, subject_.examples_of(plan), plan.dtype, probe_options);
  }

  /// The state of a search is that of these settings and this build.
  static SearchState search_of(const std::string& path, const ProbeAttributes& settings) {
    std::string key = build_git_commit();
    for (const auto& [name, value] : settings) key += "\n" + name + " = " + to_toml(value);
    return {path + ".partial", key};
  }

  void prepare() {
    if (prepared_.objective) return;
    prepared_ = subject_.prepare(checkpoint_, twin_);
    prepared_.objective->share_over(ranks_);
    subset_loss_ = prepared_.objective->loss();
  }

  // What a measurement doesn't depend on, but its reader wants. A checkpoint at which the whole training set was not
  // evaluated has no train_loss.
  void describe(ProbeAttributes& attributes) const {
    const auto full = checkpoint_.progress.find("train_loss");
    attributes.emplace_back("train_loss",
                            full == checkpoint_.progress.end() ? OptionValue(NAN) : full->second);
    attributes.emplace_back("subset_loss", subset_loss_);
    attributes.emplace_back("weight_norm", weight_norm(checkpoint_));
    attributes.emplace_back("micro_batch", request_.plan.micro_batch);
    if (!ranks_.is_alone()) attributes.emplace_back("ranks", int64_t{ranks_.size()});
    const auto level = checkpoint_.progress.find("level");
    if (level != checkpoint_.progress.end()) attributes.emplace_back("loss_level", level->second);
  }

  std::string run_folder_, label_;
  bool twin_;
  Checkpoint checkpoint_;
  const ProbeRequest& request_;
  const std::optional<RunOptions>& study_;
  const Subject& subject_;
  const RankGroup& ranks_;
  Prepared prepared_;
  double subset_loss_ = NAN;
};

/// Rank 0 says which: it may have written the last of them when the others were done with training already.
std::vector<std::string> labels_of_first(const std::string& run_folder, const std::vector<std::string>& at,
                                         const RankGroup& ranks) {
  std::string all;
  if (ranks.is_first()) all = fmt::format("{}", fmt::join(chosen_labels(run_folder, at), "\n"));
  std::istringstream lines(ranks.broadcast(all));
  std::vector<std::string> labels;
  for (std::string label; std::getline(lines, label);) labels.push_back(label);
  return labels;
}

}  // namespace

std::vector<ProbeOutcome> probe_run(const std::string& run_folder, const ProbeRequest& request,
                                    const std::function<void(const ProbeStep&)>& begins,
                                    const RankGroup& ranks) {
  std::vector<ProbeOutcome> outcomes;
  const std::vector<std::string> labels = labels_of_first(run_folder, request.plan.at, ranks);
  if (labels.empty() || (request.plan.run.empty() && request.plan.twin.empty())) return outcomes;
  std::optional<FileLock> lock;
  if (ranks.is_first()) {
    make_folders(run_folder + "/probes");
    lock.emplace(run_folder + "/probes/lock", run_folder + "/probes");
  }
  ranks.agree("the probes",
              fmt::format("{} {}", fmt::join(request.plan.run, " "), fmt::join(request.plan.twin, " ")));
  const c10::Device device = ranks.use_device(apply_runtime(request.runtime));
  const std::optional<RunOptions> study = study_options(run_folder);
  std::unique_ptr<Subject> subject;
  ProbeCountdown countdown(request.plan, request.probe_options, labels.size());
  for (const std::string& label : labels) {
    Checkpoint checkpoint = read_checkpoint(checkpoint_path(run_folder, label));
    if (!subject) subject = std::make_unique<Subject>(run_folder, checkpoint, request.plan, device);
    for (const bool twin : {false, true}) {
      const std::vector<std::string>& wanted = twin ? request.plan.twin : request.plan.run;
      if (wanted.empty()) continue;
      const std::string name = twin ? twin_label(label) : label;
      CheckpointProbes probes(run_folder, name, checkpoint, request, study, *subject, twin, ranks);
      for (const std::string& probe : wanted) {
        throw_if_interrupted();  // what is measured is on disk
        const ProbeStep step = countdown.begin(name, probe);
        if (begins && ranks.is_first()) begins(step);
        outcomes.push_back(probes.run(probe));
        countdown.end(!outcomes.back().skipped);
      }
    }
  }
  return outcomes;
}

}  // namespace basin
