#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/hash.h"
#include "data/import.h"

extern char** environ;

namespace basin {
namespace fs = std::filesystem;
namespace {

constexpr int kNotFound = 127;

/// Exit code of a program found along PATH, its output thrown away; kNotFound where it isn't there.
int run_quietly(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return kNotFound;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return kNotFound;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string explain_curl(int code) {
  switch (code) {
    case 5:
    case 6:
      return "the host's name cannot be resolved; is there a network?";
    case 7:
      return "no connection to the host";
    case 22:
      return "the server refused it";
    case 23:
      return "the file cannot be written";
    case 28:
      return "it timed out";
    case 35:
    case 60:
      return "no trusted TLS connection";
    default:
      return fmt::format("curl ended with code {}", code);
  }
}

std::string explain_wget(int code) {
  switch (code) {
    case 3:
      return "the file cannot be written";
    case 4:
      return "network failure; is there a network?";
    case 5:
      return "no trusted TLS connection";
    case 8:
      return "the server refused it";
    default:
      return fmt::format("wget ended with code {}", code);
  }
}

/// Why the download failed; empty where it didn't.
std::string download(const std::string& url, const std::string& path) {
  int code = run_quietly({"curl", "--fail", "--location", "--silent", "--connect-timeout", "20",
                          "--speed-limit", "1000", "--speed-time", "60", "--output", path, url});
  if (code == 0) return "";
  if (code != kNotFound) return explain_curl(code);
  code = run_quietly({"wget", "--quiet", "--timeout=20", "--tries=2", "-O", path, url});
  if (code == 0) return "";
  if (code != kNotFound) return explain_wget(code);
  return "neither curl nor wget is installed";
}

}  // namespace

void fetch_archive(const std::string& url, const std::string& sha256, const std::string& path) {
  const auto give_up = [&](const std::string& why) {
    std::error_code ignored;
    fs::remove(path, ignored);
    throw DataError("cannot fetch " + url + ": " + why);
  };
  const std::string fault = download(url, path);
  if (!fault.empty()) give_up(fault);
  if (!fs::is_regular_file(path)) give_up("nothing was downloaded");
  const std::string found = sha256_of_file(path);
  if (found != sha256) give_up(fmt::format("the download has SHA-256 {}, not {}", found, sha256));
}

}  // namespace basin
