#include "ranks/place.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "core/error.h"

namespace basin {
namespace {

constexpr int kTorchrunPort = 29500;

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? std::optional<std::string>(value) : std::nullopt;
}

int number_of(const std::string& name, const std::string& text, int least) {
  int value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || value < least)
    throw ConfigError(fmt::format("{} = \"{}\" is no whole number of at least {}", name, text, least));
  return value;
}

std::optional<int> number(const char* name, int least) {
  const std::optional<std::string> text = environment(name);
  return text ? std::optional(number_of(name, *text, least)) : std::nullopt;
}

/// How a launcher calls what it says.
struct Launcher {
  const char *rank, *size, *local_rank, *local_size;
  const char* only_with;  // a variable without which the others mean something else; "": none
};

// Slurm sets its numbers in a batch script too, which is no task of a step.
constexpr Launcher kLaunchers[] = {{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", ""},
                                   {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                    "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", ""},
                                   {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", ""},
                                   {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "", "SLURM_STEP_ID"}};

std::optional<RankPlace> place_by(const Launcher& launcher) {
  const bool there = environment(launcher.rank) && environment(launcher.size) &&
                     (std::string(launcher.only_with).empty() || environment(launcher.only_with));
  if (!there) return std::nullopt;
  RankPlace place;
  place.size = *number(launcher.size, 1);
  place.rank = *number(launcher.rank, 0);
  if (place.rank >= place.size)
    throw ConfigError(fmt::format("{} = {}, but {} = {}: ranks count from 0", launcher.rank, place.rank,
                                  launcher.size, place.size));
  place.local_rank = number(launcher.local_rank, 0).value_or(0);
  place.local_size = *launcher.local_size ? number(launcher.local_size, 1).value_or(1) : 1;
  return place;
}

void meet(RankPlace& place) {
  const std::optional<std::string> host = environment("MASTER_ADDR"),
                                   nodes = environment("SLURM_STEP_NODELIST");
  if (host) {
    place.host = *host;
  } else if (nodes) {
    place.host = first_host(*nodes);
  } else if (place.local_size != place.size) {
    throw ConfigError(
        fmt::format("{} processes and no place to meet: set MASTER_ADDR to rank 0's host", place.size));
  }
  const std::optional<int> port = number("MASTER_PORT", 1), job = number("SLURM_JOB_ID", 0),
                           step = number("SLURM_STEP_ID", 0);
  // Two steps of one job that run at once meet at two ports.
  place.port = port ? *port : job ? 20000 + (*job * 7 + step.value_or(0)) % 20000 : kTorchrunPort;
}

}  // namespace

void require_open_files(int ranks) {
  require_open_files(32 + 2 * ranks, fmt::format("each of {} ranks", ranks));
}

void require_open_files(int files, const std::string& who) {
  const auto needed = static_cast<rlim_t>(files);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < needed)
    throw ConfigError(fmt::format("{} has {} files open at once, and {} are allowed (ulimit -n)", who, needed,
                                  limit.rlim_cur));
}

std::string first_host(const std::string& list) {
  const size_t end = list.find_first_of(",[");
  if (end == std::string::npos || list[end] == ',') return list.substr(0, end);
  // "a-[1,3]-b": the first number, up to "-" or ",", and what comes behind the bracket.
  const size_t close = list.find(']', end);
  const std::string first = list.substr(end + 1, list.find_first_of("-,]", end) - end - 1);
  const std::string behind =
      close == std::string::npos ? "" : list.substr(close + 1, list.find(',', close) - close - 1);
  return list.substr(0, end) + first + behind;
}

std::optional<RankPlace> place_of_environment() {
  for (const Launcher& launcher : kLaunchers) {
    std::optional<RankPlace> place = place_by(launcher);
    if (!place) continue;
    if (place->size == 1) return std::nullopt;
    meet(*place);
    return place;
  }
  if (const int size = number("WORLD_SIZE", 1).value_or(1); size > 1)
    throw ConfigError(fmt::format("WORLD_SIZE = {} without RANK: which of them is this process?", size));
  return std::nullopt;
}

}  // namespace basin
