#include "core/provenance.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <pwd.h>
#include <torch/version.h>
#include <unistd.h>

#include <ctime>

#include "core/build_info.h"

namespace basin {
namespace {

std::string command_line;

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

std::string user_name() {
  const passwd* entry = ::getpwuid(::getuid());
  return entry ? entry->pw_name : std::to_string(::getuid());
}

std::string working_folder() {
  std::error_code error;
  const auto path = std::filesystem::current_path(error);
  return error ? "unknown" : path.string();
}

}  // namespace

void remember_command_line(int argc, char** argv) {
  command_line = fmt::format("{}", fmt::join(argv, argv + argc, " "));
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

Provenance collect_provenance() {
  auto& context = at::globalContext();
  const bool cuda = at::hasCUDA() && at::getNumGPUs() > 0;
  return {
      {"git_commit", build_git_commit()},
      {"git_dirty", build_git_dirty()},
      {"argv", command_line},
      {"cwd", working_folder()},
      {"host", host_name()},
      {"user", user_name()},
      {"pid", std::to_string(::getpid())},
      {"compiler", build_compiler()},
      {"flags", build_flags()},
      {"libtorch", TORCH_VERSION},
      {"libraries", build_libraries()},
      {"cuda", cuda ? "present" : "none"},
      {"num_threads", std::to_string(at::get_num_threads())},
      {"tf32", "off"},
      {"deterministic", context.deterministicAlgorithms() ? "yes" : "no"},
      {"started_utc", utc_now()},
  };
}

}  // namespace basin
