#include "ranks/local_ranks.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "core/clock.h"
#include "core/error.h"
#include "ranks/rank_group.h"

namespace basin {
namespace {

constexpr char kStarted[] = "BASIN_LOCAL_RANKS_OF";  // the process id of rank 0
constexpr double kPatience = 15;                     // seconds: another rank's last words take a few
constexpr unsigned kMostPerCore = 16;                // more only takes memory, 0.1 GB each and up

[[noreturn]] void give_up(const char* what) {
  throw ConfigError(fmt::format("--ranks: can't {}: {}", what, std::strerror(errno)));
}

void share_cores(int ranks) {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  if (static_cast<unsigned>(ranks) > kMostPerCore * cores)
    throw ConfigError(fmt::format("--ranks {}: with {} cores this machine takes at most {}", ranks, cores,
                                  kMostPerCore * cores));
  const unsigned threads = std::max(1u, cores / static_cast<unsigned>(ranks));
  setenv("OMP_NUM_THREADS", std::to_string(threads).c_str(), 0);
}

/// In a child: this program again, as another rank.
[[noreturn]] void run_as(const RankPlace& place, const std::vector<std::string>& arguments, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  const auto tell = [](const char* name, int value) { setenv(name, std::to_string(value).c_str(), 1); };
  tell(kStarted, parent);
  tell("RANK", place.rank);
  tell("WORLD_SIZE", place.size);
  tell("LOCAL_RANK", place.local_rank);
  tell("LOCAL_WORLD_SIZE", place.local_size);
  tell("MASTER_PORT", place.port);
  setenv("MASTER_ADDR", place.host.c_str(), 1);
  // What it has to say rank 0 says (RankGroup::fail()), and not as often as there are ranks.
  const int nowhere = open("/dev/null", O_WRONLY);
  for (const int said : {STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, said);
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  execv("/proc/self/exe", pointers.data());
  _exit(1);
}

}  // namespace

// The variable is handed on to whoever that process starts in turn.
bool started_by_local_ranks() {
  const char* const of = std::getenv(kStarted);
  return of && std::to_string(getppid()) == of;
}

int listening_socket(int& port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (socket < 0 || bind(socket, any, size) != 0 || listen(socket, SOMAXCONN) != 0 ||
      getsockname(socket, any, &size) != 0)
    give_up("listen on this machine");
  port = ntohs(address.sin_port);
  return socket;
}

LocalRanks::LocalRanks(int ranks, const std::vector<std::string>& arguments) {
  share_cores(ranks);
  require_open_files(ranks);  // while there is one process to say it
  place_.size = place_.local_size = ranks;
  place_.listening = listening_socket(place_.port);
  const pid_t parent = getpid();
  for (int rank = 1; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child < 0) give_up("start another process");
    if (child == 0) {
      RankPlace place = place_;
      place.rank = place.local_rank = rank;
      run_as(place, arguments, parent);
    }
    others_.push_back(child);
  }
}

void LocalRanks::require_all() const {
  for (size_t i = 0; i < others_.size(); ++i) {
    siginfo_t ended = {};  // it stays what the destructor waits for
    if (waitid(P_PID, static_cast<id_t>(others_[i]), &ended, WEXITED | WNOHANG | WNOWAIT) != 0) continue;
    if (ended.si_pid != others_[i]) continue;
    throw RankLost(fmt::format("rank {} (pid {}) ended before it met the others: {} {}", i + 1, others_[i],
                               ended.si_code == CLD_EXITED ? "exit code" : "signal", ended.si_status));
  }
}

void LocalRanks::end_others() const {
  for (const pid_t other : others_) kill(other, SIGKILL);
}

LocalRanks::~LocalRanks() {
  const Clock::time_point start = Clock::now();
  for (const pid_t other : others_) {
    while (waitpid(other, nullptr, WNOHANG) == 0) {
      if (seconds_since(start) > kPatience) kill(other, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

}  // namespace basin
