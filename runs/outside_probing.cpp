#include "runs/outside_probing.h"

#include "core/file_lock.h"
#include "core/files.h"
#include "core/hash.h"
#include "core/interrupt.h"
#include "core/math/nan.h"
#include "core/seed.h"
#include "io/probe_file.h"
#include "probes/registry.h"
#include "runs/probe_record.h"
#include "runs/probe_settings.h"
#include "runs/subject.h"

namespace basin {
namespace {

constexpr const char* kLabel = "end";

/// The names and shapes alone: the same for all weights of a network.
std::string shapes_hash(const OutsideProblem& problem) {
  std::string text = fmt::format("{}\n", problem.examples());
  for (const ParameterInfo& p : problem.parameters().parameters())
    text += fmt::format("{} [{}]\n", p.name, fmt::join(p.tensor.sizes(), ", "));
  return sha256_hex(text);
}

class OutsideProbes {
 public:
  OutsideProbes(OutsideProblem& problem, const OutsideRequest& request)
      : problem_(problem),
        request_(request),
        seed_(derive_seed(request.seed, "probe")),
        loss_(problem.answers(Answer::loss) ? problem.loss() : kNaN),
        content_(weights_hash(problem)),
        shapes_(shapes_hash(problem)) {}

  ProbeOutcome run(const std::string& probe) {
    const ProbeEntry& entry = find_entry(probe_registry(), probe, "probe");
    const ProbeContext context{problem_, seed_, problem_.examples(), ""};
    const ProbeResult result = run_or_fail(probe, request_.probe_options.at(probe), context);
    ProbeAttributes settings = chosen_settings(probe, problem_.examples(), dtype(), request_.probe_options);
    const std::string fingerprint = settings_fingerprint(settings);
    settings.insert(settings.end(), {{"settings", fingerprint},
                                     {"version", entry.version},
                                     {"checkpoint_sha256", content_},
                                     {"train_loss", kNaN},
                                     {"subset_loss", loss_}});
    ProbeRecord record = record_of(result, std::move(settings));
    record.run_id = content_.substr(0, 12);
    record.config_id = shapes_.substr(0, 12);
    record.checkpoint = kLabel;
    const std::string path = fmt::format("{}/probes/{}.{}.h5", request_.out, kLabel, probe);
    write_probe_file(path, record);
    return {kLabel, probe, path, result.status, result.message, result.seconds};
  }

 private:
  std::string dtype() const { return problem_.dtype() == at::kDouble ? "float64" : "float32"; }

  OutsideProblem& problem_;
  const OutsideRequest& request_;
  uint64_t seed_;
  double loss_;
  std::string content_, shapes_;
};

}  // namespace

std::string weights_hash(const OutsideProblem& problem) {
  Checkpoint weights;
  weights.parameters = problem.parameters().parameters();
  return content_hash(weights);
}

std::vector<ProbeOutcome> probe_outside(OutsideProblem& problem, const OutsideRequest& request,
                                        const std::function<void(const ProbeStep&)>& begins) {
  make_folders(request.out + "/probes");
  const FileLock lock(request.out + "/probes/lock", request.out + "/probes");
  check_outside(problem, request.seed);
  OutsideProbes probes(problem, request);
  ProbePlan plan;
  plan.run = request.probes;
  ProbeCountdown countdown(plan, request.probe_options, /*checkpoints=*/1);
  std::vector<ProbeOutcome> outcomes;
  for (const std::string& probe : request.probes) {
    throw_if_interrupted();  // what is measured is on disk
    const ProbeStep step = countdown.begin(kLabel, probe);
    if (begins) begins(step);
    outcomes.push_back(probes.run(probe));
    countdown.end(/*measured=*/true);
  }
  return outcomes;
}

}  // namespace basin
