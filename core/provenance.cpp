#include "core/provenance.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <pwd.h>
#include <torch/version.h>
#include <unistd.h>

#include <ctime>

#include "core/build_info.h"
#include "core/math/nan.h"

namespace basin {
namespace {

constexpr const char* kNone = "none";

std::vector<std::string> arguments;
std::string start_utc;

std::string user_name() {
  const passwd* entry = ::getpwuid(::getuid());
  return entry ? entry->pw_name : std::to_string(::getuid());
}

std::string working_folder() {
  std::error_code error;
  const auto path = std::filesystem::current_path(error);
  return error ? "unknown" : path.string();
}

// "13.0" of CUDA's 13000, "9.10.2" of cuDNN's 91002.
std::string cuda_version(long number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }
std::string cudnn_version(long number) {
  return fmt::format("{}.{}.{}", number / 10000, number % 10000 / 100, number % 100);
}

// What stands behind the colon in the first line that begins with the label; empty where there is none.
std::string value_in(const std::filesystem::path& path, const std::string& label) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(label, 0) != 0 || line.find(':') == std::string::npos) continue;
    const size_t start = line.find_first_not_of(" \t", line.find(':') + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

// With the instructions that ATen's kernels use: sums come out otherwise with others.
std::string cpu_name() {
  const std::string model = value_in("/proc/cpuinfo", "model name");
  return fmt::format("{}, {}", model.empty() ? "unknown" : model, at::get_cpu_capability());
}

// What the NVIDIA driver says about each of its devices, whatever this build was made for.
std::string gpu_names() {
  std::vector<std::string> names;
  std::error_code missing;
  for (const auto& gpu : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", missing)) {
    const std::string model = value_in(gpu.path() / "information", "Model");
    if (!model.empty()) names.push_back(model);
  }
  return names.empty() ? kNone : fmt::format("{}", fmt::join(names, ", "));
}

// "580.82.07" of "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.82.07  ...".
std::string driver_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;) {
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos)
      return word;
  }
  return kNone;
}

}  // namespace

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

void remember_command_line(int argc, char** argv) {
  start_utc = utc_now();
  arguments.assign(argv, argv + argc);
}

const std::vector<std::string>& command_line() { return arguments; }

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

double seconds_since_utc(const std::string& text) {
  std::tm utc = {};
  const char* const end = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  if (end == nullptr || *end != '\0') return kNaN;
  return std::difftime(std::time(nullptr), timegm(&utc));
}

Provenance collect_provenance() {
  const auto& context = at::globalContext();
  const bool cuda = at::hasCUDA();
  const bool tf32 = context.allowTF32CuBLAS() || context.allowTF32CuDNN();
  return {
      {"git_commit", build_git_commit()},
      {"git_dirty", build_git_dirty()},
      {"argv", fmt::format("{}", fmt::join(arguments, " "))},
      {"cwd", working_folder()},
      {"host", host_name()},
      {"user", user_name()},
      {"pid", std::to_string(::getpid())},
      {"compiler", build_compiler()},
      {"flags", build_flags()},
      {"libtorch", TORCH_VERSION},
      {"libraries", build_libraries()},
      {"cuda", cuda ? cuda_version(at::detail::getCUDAHooks().versionCUDART()) : kNone},
      {"cudnn", cuda ? cudnn_version(at::detail::getCUDAHooks().versionRuntimeCuDNN()) : kNone},
      {"cpu", cpu_name()},
      {"gpu", gpu_names()},
      {"driver", driver_version()},
      {"num_threads", std::to_string(at::get_num_threads())},
      {"tf32", tf32 ? "on" : "off"},
      {"deterministic", context.deterministicAlgorithms() ? "yes" : "no"},
      {"started_utc", start_utc.empty() ? utc_now() : start_utc},
  };
}

}  // namespace basin
