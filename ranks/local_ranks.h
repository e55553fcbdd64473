// defines: LocalRanks, copies of this program as the ranks of one run on this machine; started_by_local_ranks(), listening_socket().
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "ranks/place.h"

namespace basin {

/// A socket that listens on this machine alone, at a port that the system chose: nobody can take it in between.
int listening_socket(int& port);

/// Whether this process is one of those that LocalRanks starts.
bool started_by_local_ranks();

/// This process becomes rank 0; the others run this program with this process's arguments, and learn their place from the environment
/// as torchrun tells it. They are silent, end with it however it ends, and share the cores unless OMP_NUM_THREADS says
/// otherwise: cores / n threads each, this process included.
class LocalRanks {
 public:
  /// Before any thread of torch's. ConfigError where no process can be made, or sixteen for each core are not enough.
  LocalRanks(int ranks, const std::vector<std::string>& arguments);
  /// Waits for the others; ends them where they don't within a few seconds.
  ~LocalRanks();
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;

  const RankPlace& place() const { return place_; }
  /// RankLost where one has ended: one that has yet to meet the others is missed by nobody else.
  void require_all() const;
  /// Before they have met: then none has work that it could lose, or last words.
  void end_others() const;

 private:
  RankPlace place_;
  std::vector<pid_t> others_;
};

}  // namespace basin
