// defines: RankGroup, the processes that share one run, and what they do together; RankLost.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/math/share.h"
#include "ranks/place.h"

namespace basin {

/// Another rank of the run is gone, or says nothing any more. What is on disk can be resumed.
struct RankLost : Error {
  explicit RankLost(const std::string& m) : Error(7, m) {}
};

/// What this rank had summed, and how long it waited for it.
struct RankTraffic {
  int64_t sums = 0, bytes = 0;  // of the tensors; a ring sends 2 (n - 1)/n of it
  double waited = 0;            // seconds in which nothing was computed; NaN on a GPU, where that isn't known
  RankTraffic since(const RankTraffic& before) const {
    return {sums - before.sums, bytes - before.bytes, waited - before.waited};
  }
  RankTraffic& operator+=(const RankTraffic& more) {
    sums += more.sums;
    bytes += more.bytes;
    waited += more.waited;
    return *this;
  }
};

/// A sum over ranks on its way.
class PendingSum {
 public:
  virtual ~PendingSum() = default;
  /// The tensor that was handed over holds the sum afterwards. RankLost.
  virtual void wait() = 0;
  /// Whether wait() returns, or throws, at once.
  virtual bool is_done() const = 0;
};

/// `size()` processes that do the same, each with the same calls in the same order; between them run torch's collectives (c10d with Gloo
/// on CPUs, NCCL on GPUs) and a key-value store that rank 0 holds.
///
/// A sum has the same bits on every rank, and from run to run at one size. It is a ring's or a tree's: with other sizes the order of
/// additions is another. Cost of a sum over n ranks: 2 (n - 1)/n of the tensor's bytes sent by each, and as many received.
///
/// What can go wrong: a process that ends, or is stopped and stays silent for `kSilence` seconds, is named in the RankLost that every
/// other rank's next or present call throws, within a few seconds after its end. One that computes for ever is waited for: from outside that
/// looks like work. A process throws for a reason of its own: fail() passes the reason on.
class RankGroup {
 public:
  static constexpr double kSilence = 20;  // in seconds
  static constexpr double kMeeting = 120, kLook = 0.5;

  /// One process by itself: every sum is the tensor as it is.
  static const RankGroup& alone();
  /// Returns when all have come. ConfigError where too few files may be open, the port is taken or the interface that GLOO_SOCKET_IFNAME
  /// names isn't there; Interrupted after a signal;
  /// RankLost naming those that didn't come within `seconds`.
  /// Every `look` seconds one that waits asks whether others are gone; `meanwhile` is called until all have come, and throws where
  /// somebody won't.
  static std::unique_ptr<RankGroup> join(const RankPlace& place, double seconds = kMeeting,
                                         double look = kLook, const std::function<void()>& meanwhile = {});
  /// Whether this process has met others in join().
  static bool has_joined();
  /// After leave(), or fail().
  ~RankGroup();
  /// Ranks 0 to `count` - 1 as a group of their own; null on the others. All call it; it lives no longer than this group, whose watch it
  /// has, and the others may call nothing of this group that needs them meanwhile.
  std::unique_ptr<RankGroup> first(int count) const;
  /// Rank 0 and rank `other`, both of which call it, as a group of two with a watch of its own: a rank that is lost is so in its pair alone.
  /// Between pairs there is no order of calls.
  std::unique_ptr<RankGroup> pair(int other) const;
  /// Whether a rank of this group is known to be gone or silent; the next call would throw RankLost.
  bool has_lost() const;
  /// From here on each goes its own way: nothing more is called, leave() waits for nobody, and who is lost isn't missed.
  void part() const;
  bool has_parted() const;
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  int rank() const { return place_.rank; }
  int size() const { return place_.size; }
  bool is_first() const { return place_.rank == 0; }
  bool is_alone() const { return place_.size == 1; }

  /// The device that this rank computes on where the run is to be on `asked`, which all ranks say: of a host's GPUs one after another, by
  /// local rank, current from here on. ConfigError where some ranks have a GPU and others none. Sums of tensors on GPUs go through NCCL
  /// where every rank has a GPU of its own, else through the host. Called before the first of them; a later
  /// call gives the same device.
  at::Device use_device(at::Device asked) const;

  /// Which of `count` items are this rank's.
  Share share(int64_t count) const { return share_of(count, place_.rank, place_.size); }
  /// The largest piece, up to `most` items, of which every rank gets as many as the others where that is possible: the passes are as many
  /// as with pieces of `most`, and shorter.
  int64_t even_piece(int64_t items, int64_t most) const;

  /// tensor <- sum of all ranks' tensors. Contiguous.
  void sum(const at::Tensor& tensor) const;
  std::unique_ptr<PendingSum> begin_sum(const at::Tensor& tensor) const;
  double sum(double here) const;
  /// `whole`, of which this rank has filled items [first, first + count) of axis 0 and left the others zero, with every rank's items in
  /// place. On the host, contiguous, any type: bytes are summed, of which all but one are 0.
  void put_together(const at::Tensor& whole) const;
  /// tensor <- rank 0's.
  void broadcast(const at::Tensor& tensor) const;
  /// Rank 0's words; the others' are not looked at.
  std::string broadcast(const std::string& words) const;
  /// Every rank's words, by rank.
  std::vector<std::string> gather(const std::string& words) const;
  /// Whether it is so on any rank.
  bool any(bool here) const;
  /// Throws ConfigError on every rank where their words differ: "WHAT differs: rank 0 has A, rank 2 has B".
  void agree(const std::string& what, const std::string& words) const;
  /// Whether every rank says these words within `seconds`. For what may have gone wrong on all of them alike.
  bool all_say(const std::string& words, double seconds) const;
  RankTraffic traffic() const;
  /// "rank 2 (pid 4711 on node7)"
  std::string name_of(int rank) const;

  /// Waits for the others, all of which call it; nothing may be called afterwards.
  void leave();
  /// This rank goes no further, and the others' RankLost say why.
  void fail(const std::string& why) noexcept;

 private:
  struct Link;
  explicit RankGroup(RankPlace place);
  /// The first rank, with which what was said ends, waits until the others have read all of it.
  void wait_for_readers() const;

  RankPlace place_;
  std::unique_ptr<Link> link_;  // null: alone
};

}  // namespace basin
