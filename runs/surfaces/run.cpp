#include "runs/surfaces/run.h"

#include <filesystem>

#include "core/build_info.h"
#include "core/error.h"
#include "core/files.h"
#include "core/interrupt.h"
#include "core/progress.h"
#include "core/provenance.h"
#include "landscape/tiles.h"

namespace basin {
namespace {

namespace fs = std::filesystem;

constexpr double kTick = 0.2;  // seconds between looks at the workers

/// One surface on its way into its file.
class LandscapeRun {
 public:
  LandscapeRun(const LandscapeRequest& request, LandscapeSubject& subject)
      : request_(request),
        kind_(find_entry(landscape_kinds(), request.kind, "kind of landscape")),
        task_(kind_.make(subject, request.kinds.at(request.kind))),
        plot_(task_->plot()),
        recipe_(recipe_of(kind_, request.kinds, subject, *task_)),
        path_(request.out.empty() ? default_landscape_path(request.kind, subject) : request.out),
        tiles_path_(path_ + ".tiles") {}

  int run() {
    if (request_.worker) return work();
    if (request_.force && !TileFolder::discard(tiles_path_))
      throw IoError(tiles_path_ + " is in use by another process");
    if (there_already()) {
      TileFolder::discard(tiles_path_);  // of a process that was killed at its very end
      return 0;
    }
    open_folder();
    if (request_.retry_failed) folder_->drop_failed();
    announce();
    try {
      prepare();
      compute();
    } catch (const Interrupted&) {
      tell_interrupted();
      throw;
    }
    return conclude();
  }

 private:
  // A finished surface of this very recipe; one of another is refused.
  bool there_already() {
    if (request_.force || !fs::exists(path_)) return false;
    const SurfaceRecord record = read_surface_file(path_);
    const std::string stored = recipe_text(record.recipe), asked = recipe_text(recipe_);
    if (stored != asked) {
      throw ConfigError(fmt::format("{}: another surface: {} (--force measures anew, --out writes elsewhere)",
                                    path_, first_difference(stored, asked)));
    }
    if (record.status() != SurfaceStatus::ok) return false;
    fmt::print("{}  ok  (measured before)\n", path_);
    return true;
  }

  void open_folder() {
    const fs::path parent = fs::path(path_).parent_path();
    if (!parent.empty()) make_folders(parent.string());
    // Rows of another build are not mixed with this one's.
    const std::string build = "build = " + to_toml(std::string(build_git_commit())) + "\n";
    const TileFolder::Layout layout{plot_.cells(), task_->tile(), static_cast<int64_t>(plot_.columns.size())};
    folder_ = std::make_unique<TileFolder>(tiles_path_, recipe_text(recipe_) + build, layout);
  }

  void prepare() {
    const FileLock lock = FileLock::wait(tiles_path_ + "/prepare.lock");
    task_->prepare(tiles_path_);
  }

  void announce() const {
    const int64_t done = folder_->cells_done();
    fmt::print(stderr, "{}: {} points{}, into {}\n", kind_.name, plot_.cells(),
               done > 0 ? fmt::format(", {} of them done before", done) : "", path_);
  }

  CellFunction measure() {
    return [this](int64_t cell, double* values) { return task_->measure(cell, values); };
  }

  int work() {
    open_folder();
    prepare();
    compute_tiles(*folder_, measure(), /*wait=*/false, [](int64_t) {});
    return 0;
  }

  void compute() {
    const int64_t before = folder_->cells_done();
    Progress progress(kind_.name, static_cast<double>(plot_.cells() - before), "points",
                      request_.runtime.progress);
    if (request_.jobs > 1) run_workers(before, progress);
    compute_tiles(*folder_, measure(), /*wait=*/true,
                  [&](int64_t done) { progress.update(static_cast<double>(done)); });
    progress.finish(static_cast<double>(folder_->cells_done() - before));
  }

  // A worker that ends before its time leaves its tile to the others, and to this process after them.
  void run_workers(int64_t before, Progress& progress) {
    ProcessPool pool;
    for (int64_t i = 0; i < request_.jobs; ++i) {
      const std::string threads = std::to_string(std::max<int64_t>(1, request_.runtime.threads));
      pool.start({std::to_string(i),
                  request_.worker_program,
                  request_.worker_arguments,
                  fmt::format("{}/worker-{}.log", tiles_path_, i),
                  {{"OMP_NUM_THREADS", threads}},
                  0});
    }
    while (pool.running() > 0) {
      throw_if_interrupted();  // the workers go with the pool; the tiles that they finished are on disk
      for (const ProcessResult& result : pool.collect(kTick)) {
        if (result.ok()) continue;
        fmt::print(stderr, "worker {}: {} (log: {}/worker-{}.log)\n", result.id, result.describe(),
                   tiles_path_, result.id);
      }
      progress.update(static_cast<double>(folder_->cells_done() - before));
    }
  }

  SurfaceRecord record() const {
    SurfaceRecord record;
    record.kind = kind_.name;
    record.recipe = recipe_;
    record.plots = {plot_};
    SurfacePlot& plot = record.plots[0];
    const Tile cells = folder_->read_all();
    plot.state = cells.state;
    const size_t columns = plot.columns.size();
    for (size_t column = 0; column < columns; ++column) {
      for (size_t cell = 0; cell < plot.state.size(); ++cell)
        plot.columns[column].values.push_back(cells.values[cell * columns + column]);
    }
    record.provenance = collect_provenance();
    record.provenance.emplace_back("ended_utc", utc_now());
    return record;
  }

  void tell_interrupted() const {
    const FileLock lock = writer_lock();
    if (const SurfaceRecord partial = record(); partial.status() == SurfaceStatus::partial)
      write_surface_file(path_, partial);
    fmt::print(stderr, "interrupted; {} of {} points are in {}; the same command resumes from there\n",
               folder_->cells_done(), plot_.cells(), path_);
  }

  // Several invocations may have worked on one surface: one of them writes it.
  FileLock writer_lock() const { return FileLock::wait(tiles_path_ + "/write.lock"); }

  int conclude() {
    std::optional<FileLock> lock(writer_lock());
    if (there_already()) {
      folder_->remove();
      return 0;
    }
    SurfaceRecord finished = record();
    task_->conclude(finished);
    write_surface_file(path_, finished);
    const auto count = [&](CellState state) {
      const std::vector<uint8_t>& states = finished.plots[0].state;
      return std::count(states.begin(), states.end(), static_cast<uint8_t>(state));
    };
    const auto nonfinite = count(CellState::nonfinite), failed = count(CellState::failed);
    fmt::print("{}  {}  {} points{}\n", path_, to_string(finished.status()), plot_.cells(),
               nonfinite > 0 ? fmt::format(", {} of them not finite", nonfinite) : "");
    if (failed == 0) {
      folder_->remove();
      return 0;
    }
    fmt::print(stderr, "{} points failed; --retry failed measures them again\n", failed);
    return 1;
  }

  const LandscapeRequest& request_;
  const LandscapeKind& kind_;
  std::unique_ptr<LandscapeTask> task_;
  SurfacePlot plot_;
  h5::Attributes recipe_;
  std::string path_, tiles_path_;
  std::unique_ptr<TileFolder> folder_;
};

void check_count(const LandscapeKind& kind, size_t count) {
  if (count >= kind.least && count <= kind.most) return;
  const std::string wanted =
      kind.least == kind.most ? std::to_string(kind.least) : fmt::format("{} to {}", kind.least, kind.most);
  throw ConfigError(fmt::format("landscape: --kind {} takes {} checkpoint{}, not {}", kind.name, wanted,
                                kind.most == 1 ? "" : "s", count));
}

}  // namespace

std::string default_landscape_path(const std::string& kind, const LandscapeSubject& subject) {
  const fs::path checkpoints = fs::absolute(subject.file(0)).lexically_normal().parent_path(),
                 runs = checkpoints.parent_path().parent_path();
  const bool of_a_run = checkpoints.filename() == "ckpt" && runs.filename() == "runs";
  std::string name = kind;
  for (size_t i = 0; i < subject.count(); ++i) {
    name += "." + subject.checkpoint(i).run_id + "." + subject.checkpoint(i).label;
  }
  const fs::path folder = of_a_run ? fs::path(subject.file(0)).parent_path() / "../../../landscape"
                                   : fs::path(subject.file(0)).parent_path() / "landscape";
  return (folder.lexically_normal() / (name + ".h5")).string();
}

int run_landscape(const LandscapeRequest& request) {
  check_count(find_entry(landscape_kinds(), request.kind, "kind of landscape"), request.files.size());
  RuntimeOptions runtime = request.runtime;
  if (request.jobs > 1)
    runtime.threads = std::max<int64_t>(1, runtime.threads);  // of each worker, and of this process
  const c10::Device device = apply_runtime(runtime);
  LandscapeSubject subject(request.files, request.landscape, device);
  return LandscapeRun(request, subject).run();
}

}  // namespace basin
