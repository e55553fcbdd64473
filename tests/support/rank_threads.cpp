#include "tests/support/rank_threads.h"

#include <thread>

#include "ranks/local_ranks.h"

namespace basin::testing {

RankPlace local_place(int rank, int ranks, int port, int listening) {
  RankPlace place;
  place.rank = place.local_rank = rank;
  place.size = place.local_size = ranks;
  place.port = port;
  if (rank == 0) place.listening = listening;
  return place;
}

std::vector<std::string> on_ranks(int ranks, const std::function<void(RankGroup&)>& work, double look) {
  int port = 0;
  const int listening = listening_socket(port);
  std::vector<std::string> faults(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      std::unique_ptr<RankGroup> group;
      try {
        group = RankGroup::join(local_place(rank, ranks, port, listening), 30, look);
        work(*group);
        group->leave();
      } catch (const std::exception& error) {
        if (group) group->fail(one_line(error));
        faults[static_cast<size_t>(rank)] = one_line(error);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return faults;
}

}  // namespace basin::testing
