#include "tests/apps/tiny_sweep.h"

#include <filesystem>

#include "core/error.h"
#include "core/files.h"
#include "io/status_file.h"

namespace basin::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBase = R"(
model = "mlp"
protocol = "A-updates"
updates = 20
batch_size = 32
micro_batch = 32
learning_rate = 0.05
checkpoint_seconds = 0.2
[data]
set = "synthetic"
train_examples = 200
test_examples = 60
[mlp]
hidden = [8]
[probes]
run = ["noise_scale", "top_eigenvalues"]
at = ["end"]
subset = 50
[top_eigenvalues]
count = 1
tolerance = 0.05
)";

// The run folder under `out` to whose log the process writes, else empty.
std::string run_folder_of(const fs::path& process, const std::string& out) {
  std::error_code gone;  // a process may end while it is looked at
  const fs::path log = fs::read_symlink(process / "fd" / "1", gone);
  const std::string folder = log.parent_path();
  return log.filename() == "run.log" && folder.rfind(out + "/", 0) == 0 ? folder : "";
}

}  // namespace

TinySweep::TinySweep(const std::string& sweep, const std::string& top) {
  write_text(folder_ / "study.toml", top + kBase + sweep);
}

std::vector<std::string> TinySweep::arguments(const std::vector<std::string>& more,
                                              const std::string& out) const {
  std::vector<std::string> all = {"sweep", folder_ / "study.toml", "--out", folder_ / out};
  all.insert(all.end(), more.begin(), more.end());
  if (std::find(all.begin(), all.end(), "--jobs") == all.end()) all.insert(all.end(), {"--jobs", "2"});
  return all;
}

BinaryResult TinySweep::run(const std::vector<std::string>& more, const std::string& out) const {
  return run_binary(arguments(more, out));
}

std::vector<std::string> TinySweep::runs(const std::string& under) const {
  std::vector<std::string> folders;
  for (const auto& entry : fs::directory_iterator(folder_ / under)) folders.push_back(entry.path().string());
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::vector<std::string> TinySweep::statuses() const {
  std::vector<std::string> words;
  for (const std::string& run : runs())
    words.emplace_back(to_string(read_status(run + "/status.json").status));
  return words;
}

bool is_within_probes(const std::string& run_folder) {
  return fs::exists(run_folder + "/probes/progress") && !fs::exists(run_folder + "/probes/done");
}

std::vector<Worker> live_workers(const std::string& out) {
  std::vector<Worker> workers;
  std::error_code gone;
  for (const auto& process : fs::directory_iterator("/proc", gone)) {
    const std::string name = process.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    Worker worker{std::stoi(name), run_folder_of(process.path(), out)};
    if (worker.folder.empty()) continue;
    try {
      const RunStatus status = read_status(worker.folder + "/status.json");
      worker.training = status.status == RunState::running && status.pid == worker.pid;
      worker.probing = is_final(status.status) && is_within_probes(worker.folder);
    } catch (const IoError&) {
      worker.training = false;  // no status yet
    }
    workers.push_back(worker);
  }
  return workers;
}

}  // namespace basin::testing
