// defines: RankWatch, which notices that another rank of the group is gone.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/clock.h"

namespace basin {

/// Each rank counts up a number of its own in the store, once a second, in a thread of its own. Rank 0 looks at all of them and writes
/// down whoever stands still; the others read that, and notice themselves when rank 0, which holds the store, is silent.
class RankWatch {
 public:
  /// `store`: a connection of its own. `names`: by rank, for messages.
  RankWatch(c10::intrusive_ptr<c10d::Store> store, int rank, std::vector<std::string> names, double silence);
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  /// Empty while all is well. Where rank 0 is stopped, not ended, the thread waits for it in vain, and this says so.
  std::string what_is_lost() const;
  /// After a collective failed: who it was, at the latest after a few beats. Never empty.
  std::string find_out();
  /// Tells the others why this rank ends.
  void announce(const std::string& why) noexcept;
  /// No more beats and no more looks.
  void stop();

 private:
  void watch();
  void say(const std::string& what);
  std::vector<int64_t> beats();

  c10::intrusive_ptr<c10d::Store> store_;
  const int rank_;
  const std::vector<std::string> names_;
  const double silence_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::string lost_;
  bool stopping_ = false;
  Clock::time_point last_look_ = Clock::now();
  std::thread thread_;
};

}  // namespace basin
