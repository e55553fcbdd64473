#include "sweep/launch/launch.h"

#include <chrono>
#include <map>
#include <thread>

#include "core/clock.h"
#include "core/error.h"
#include "core/files.h"
#include "core/interrupt.h"
#include "core/math/nan.h"
#include "core/messages.h"
#include "core/progress.h"
#include "core/provenance.h"
#include "study/contrast_cells.h"
#include "sweep/collect/collect.h"
#include "sweep/launch/jobs_file.h"
#include "sweep/look.h"
#include "sweep/registration.h"

namespace basin {
namespace {

constexpr double kTick = 0.2;       // seconds between looks for Ctrl-C
constexpr double kLookEvery = 2;    // seconds between looks at the runs, or ten times as long as one takes
constexpr double kQueueEvery = 10;  // seconds between calls of squeue, which a cluster's users share
constexpr double kSilent = 300;     // seconds without a word from a worker that are worth one of ours
constexpr size_t kMostWorkersShown = 8;

std::string absolute(const std::string& path) { return std::filesystem::absolute(path).lexically_normal(); }

// "Slurm: 3 tasks running, 9 waiting (Resources)"
std::string text_of(const std::vector<QueuedTask>& tasks) {
  size_t running = 0;
  std::map<std::string, size_t> waiting;  // by reason
  for (const QueuedTask& task : tasks) task.runs() ? ++running : ++waiting[task.reason];
  std::string text = fmt::format("Slurm: {} running", counted(running, "task"));
  for (const auto& [reason, count] : waiting) text += fmt::format(", {} waiting ({})", count, reason);
  return text;
}

void wait_seconds(double seconds) {
  for (const Clock::time_point start = Clock::now();
       seconds_since(start) < seconds && interrupt_signal() == 0;)
    std::this_thread::sleep_for(std::chrono::duration<double>(kTick));
}

}  // namespace

SlurmLaunch::SlurmLaunch(const Study& study, const LaunchRequest& request, SweepObserver& observer)
    : study_(study), request_(request), observer_(observer), out_(request.out) {}

std::vector<StageArray> SlurmLaunch::arrays(const CostModel& costs) const {
  return plan_arrays(
      study_, out_, costs,
      {slurm_.largest_array(), request_.task_minutes, request_.jobs, request_.probes, request_.retry_failed});
}

BatchJob SlurmLaunch::job_of(const StageArray& array, const std::string& after) const {
  const std::string out = absolute(request_.out), jobs = std::to_string(request_.jobs),
                    threads = std::to_string(request_.threads), stage = std::to_string(array.stage);
  BatchJob job;
  job.name = fmt::format("basin-{}-{}", request_.name, array.stage);
  job.folder = slurm_folder(out);
  job.command = {
      request_.program_path, "sweep", out + "/study.toml", "--out", out, "--stage", stage, "--jobs", jobs};
  job.command.insert(job.command.end(), {"--threads", threads});
  if (request_.ranks > 1) job.command.insert(job.command.end(), {"--ranks", std::to_string(request_.ranks)});
  for (const std::string& set : request_.sets) job.command.insert(job.command.end(), {"--set", set});
  if (!request_.probes) job.command.push_back("--no-probes");
  job.retry_failed = request_.retry_failed;
  job.tasks = array.tasks;
  job.shards = array.shards;
  job.minutes = array.minutes();
  // Longer than the partition allows it would wait for ever; what isn't done by then is requeued.
  if (const std::optional<int64_t> longest = slurm_.longest_minutes(value_of(request_.given, "partition")))
    job.minutes = std::min(job.minutes, *longest);
  job.cpus = request_.cpus();
  job.after = after;
  job.given = request_.given;
  return job;
}

std::string SlurmLaunch::script_path(const StageArray& array) const {
  return fmt::format("{}/stage-{}.sh", slurm_folder(out_.path()), array.stage);
}

// By number, name and cluster: OUT may have been used from another one.
std::vector<QueuedTask> SlurmLaunch::queued() const {
  std::set<std::pair<std::string, std::string>> ours;
  const std::string cluster = slurm_.cluster();
  for (const SubmittedJob& job : read_jobs(out_.path()))
    if (job.cluster == cluster) ours.emplace(job.id, job.name);
  std::vector<QueuedTask> tasks = slurm_.queued();
  std::erase_if(tasks, [&](const QueuedTask& task) { return !ours.count({task.job, task.name}); });
  return tasks;
}

void SlurmLaunch::submit() {
  slurm_.require();
  if (!std::filesystem::exists(out_.path())) (void)slurm_.queued();  // it answers, before anything is written
  make_folders(slurm_folder(out_.path()));
  const FileLock lock(slurm_folder(out_.path()) + "/lock", out_.path());
  if (const std::vector<QueuedTask> tasks = queued(); !tasks.empty()) {
    observer_.announce(fmt::format("{} of an earlier call are in the queue: nothing is submitted",
                                   counted(tasks.size(), "task")));
    return;
  }
  cells_of_contrasts(study_, expand(study_));
  require_same_claims(out_, study_, request_.extend);
  const SweepPlan plan = plan_sweep(study_, out_, {request_.probes});
  require_data(plan, request_.retry_failed);
  require_same_data(out_, plan.cells);
  CostModel costs(plan.cells, plan.probed);
  calibrate_if_worthwhile(costs, seconds_left(plan, costs, 1, request_.retry_failed), request_, observer_);
  freeze();
  submit(arrays(costs));
}

void SlurmLaunch::freeze() {
  SweepFolder folder(out_.path(), FolderUse::shared);
  const std::optional<FileLock> common = common_lock(out_.path(), true);
  folder.freeze(study_);
  write_registration(folder, next_registration(folder, study_, request_.extend));
}

void SlurmLaunch::submit(const std::vector<StageArray>& arrays) {
  std::set<std::string> submitted;
  std::string after;
  try {
    for (const StageArray& array : arrays) submitted.insert(after = submit(array, after));
  } catch (const Error&) {  // all or nothing: a stage without the next one would look like the whole
    if (!submitted.empty()) slurm_.cancel(submitted);
    throw;
  }
}

std::string SlurmLaunch::submit(const StageArray& array, const std::string& after) {
  const std::string script = script_path(array);
  const BatchJob job = job_of(array, after);
  write_file_atomically(script, batch_script(job));
  std::string id = slurm_.submit(sbatch_arguments(job), script);
  std::vector<SubmittedJob> jobs = read_jobs(out_.path());
  jobs.push_back(
      {slurm_.cluster(), job.name, id, array.name, static_cast<int64_t>(array.tasks.size()), utc_now()});
  write_jobs(out_.path(), jobs);
  observer_.announce(fmt::format("job {}: {}, {} for {}, about {} of work, time limit {} min", id, array.name,
                                 counted(array.tasks.size(), "task"), counted(array.runs, "run"),
                                 format_duration(array.seconds), job.minutes));
  return id;
}

SweepState SlurmLaunch::state_with(const std::vector<QueuedTask>& tasks) const {
  const SweepLook look = look_at(study_, out_, {request_.probes});
  SweepState state = look.state();
  for (const RunAtWork& run : look.at_work) {
    if (run.silent_seconds > kSilent)
      state.notes.push_back(fmt::format("{}: no word for {} from pid {} on host {}", run.run_id,
                                        format_duration(run.silent_seconds), run.pid, run.host));
  }
  if (state.workers.size() > kMostWorkersShown) {
    state.notes.insert(state.notes.begin(),
                       fmt::format("and {} more", state.workers.size() - kMostWorkersShown));
    state.workers.resize(kMostWorkersShown);
  }
  state.notes.push_back(text_of(tasks));
  return state;
}

StudyOutcome SlurmLaunch::watch() {
  slurm_.require();
  observer_.begin("sweep");
  Clock::time_point asked = Clock::now();
  for (std::vector<QueuedTask> tasks = queued(); !tasks.empty();) {
    const Clock::time_point start = Clock::now();
    observer_.update(state_with(tasks));
    wait_seconds(std::max(kLookEvery, 10 * seconds_since(start)));
    if (interrupt_signal() != 0) {
      observer_.announce("the jobs go on; the same command shows them again, and with --cancel it ends them");
      throw_if_interrupted();
    }
    if (seconds_since(asked) < kQueueEvery) continue;
    asked = Clock::now();
    try {
      tasks = queued();
    } catch (const IoError& error) {  // a controller that is being restarted
      observer_.announce(error.what());
    }
  }
  observer_.end();
  const SweepLook look = look_at(study_, out_, {request_.probes});
  StudyOutcome outcome;
  outcome.problems = look.failures;
  if (look.lost > 0) outcome.problems.push_back(counted(look.lost, "run") + " that need what failed");
  outcome.left_to_others = look.to_come;
  const std::optional<FileLock> common = common_lock(out_.path(), false);
  if (look.to_come == 0) outcome.table = collect(out_.path());
  return outcome;
}

void SlurmLaunch::cancel() {
  slurm_.require();
  const std::vector<QueuedTask> tasks = queued();
  std::set<std::string> jobs;
  for (const QueuedTask& task : tasks) jobs.insert(task.job);
  if (!jobs.empty()) slurm_.cancel(jobs);
  observer_.announce(jobs.empty() ? "the queue has no job of this sweep"
                                  : fmt::format("cancelled: {} of {}", counted(tasks.size(), "task"),
                                                counted(jobs.size(), "job")));
}

}  // namespace basin
