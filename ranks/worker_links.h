// defines: WorkerLinks and ServerLink, the two ends between a parameter server and its workers; WorkOrder, WorkerEvent.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "ranks/rank_group.h"

namespace basin {

/// What a worker is to compute: the gradient of a batch, which begins at a position of the example stream, and the number that its
/// dropout masks are drawn for.
struct WorkOrder {
  int64_t start = 0, draw = 0;
};

/// What the server hears of a worker.
struct WorkerEvent {
  int64_t worker = 0;        // from 0
  std::string lost = {};     // who is gone; empty: it pushed
  double loss = NAN;         // of its batch
  double seconds = NAN;      // that it computed, by its own clock
  at::Tensor gradient = {};  // flat, on the host; good until the worker's next order
};

/// Rank 0's end: workers are ranks 1, 2, ..., each in a pair with it (RankGroup::pair), so that one that dies or falls silent for
/// RankGroup::kSilence seconds takes no other along. A push is a sum over the pair, of the server's zeros and the worker's gradient; a
/// pull is a broadcast. Not c10d's send and receive, because Gloo can't say whether a receive is done, only wait for it: the server would need
/// a thread for each worker. Messages of each step: three times the weights, since a sum goes both ways. Memory: one gradient for each worker.
class WorkerLinks {
 public:
  /// All ranks of the group make their end at the same time. ConfigError where the server may not have as many files open as it needs.
  WorkerLinks(const RankGroup& ranks, int64_t weights, at::ScalarType dtype);
  /// finish(), without a word where that fails; nothing where no worker had an order, for they may still wait for something else.
  ~WorkerLinks();
  WorkerLinks(const WorkerLinks&) = delete;
  WorkerLinks& operator=(const WorkerLinks&) = delete;

  int64_t count() const { return static_cast<int64_t>(links_.size()); }
  /// Flat weights to a worker that waits for them. Nothing where it is gone: receive() says so.
  void send(int64_t worker, const WorkOrder& order, const at::Tensor& weights);
  /// Whichever comes next of a worker that has an order. In the order of arrival, as far as looks tell it: whoever is there by one look goes
  /// behind those of the looks before it, so that a server that is always busy passes nobody over.
  WorkerEvent receive();
  /// Lets workers end their step, and go. Whether the ranks part now (RankGroup::part), as all of them hear: they do where one was lost,
  /// by its last answer, or where they are to.
  bool finish(bool part = false);

 private:
  struct Link {
    std::unique_ptr<RankGroup> pair;
    at::Tensor outcome, gradient;                           // its loss, and the seconds that it computed
    std::unique_ptr<PendingSum> outcome_sum, gradient_sum;  // where a push is expected
    std::string lost = {};
    bool arrived = false;  // and is one of arrived_
    bool gone = false;     // lost, and receive() has said so
  };
  void lose(Link& link, const RankLost& why);
  /// Waits for the push that is expected; false where there is none, or the worker is gone.
  bool takes_push(Link& link);
  void look_for_arrivals();
  std::vector<Link> links_;
  std::deque<size_t> arrived_;  // those that have pushed, or are gone
  bool begun_ = false, finished_ = false, parted_ = false;
};

/// A worker's end.
class ServerLink {
 public:
  ServerLink(const RankGroup& ranks, int64_t weights, at::ScalarType dtype);
  /// The next order, and weights() for it; nothing: it was the last. RankLost.
  std::optional<WorkOrder> pull();
  const at::Tensor& weights() const { return weights_; }  // flat, on the host
  void push(double loss, const at::Tensor& gradient);
  /// Why this worker ends, which the server otherwise has to notice and can't know.
  void fail(const std::string& why) noexcept { pair_->fail(why); }
  /// What the last word said: that the ranks part.
  bool parts() const { return parts_; }

 private:
  std::unique_ptr<RankGroup> pair_;
  at::Tensor weights_;
  Clock::time_point pulled_;  // when it had its last order
  bool parts_ = false;
};

}  // namespace basin
