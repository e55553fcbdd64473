#include "tests/support/rank_threads.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

namespace basin::testing {
namespace {

/// A port that was free a moment ago.
int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  bind(socket, reinterpret_cast<sockaddr*>(&address), size);
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  close(socket);
  return ntohs(address.sin_port);
}

}  // namespace

std::vector<std::string> on_ranks(int ranks, const std::function<void(RankGroup&)>& work) {
  const int port = free_port();
  std::vector<std::string> faults(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      RankPlace place;
      place.rank = place.local_rank = rank;
      place.size = place.local_size = ranks;
      place.port = port;
      std::unique_ptr<RankGroup> group;
      try {
        group = RankGroup::join(place, 30);
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
