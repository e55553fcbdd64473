// What ranks do together, with threads of this process as ranks.
#include "ranks/rank_group.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <mutex>
#include <thread>

#include "core/clock.h"
#include "core/interrupt.h"
#include "ranks/local_ranks.h"
#include "tests/support/message_of.h"
#include "tests/support/rank_threads.h"

namespace basin {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using testing::on_ranks;

TEST(RankGroup, AloneChangesNothing) {
  const RankGroup& one = RankGroup::alone();
  const at::Tensor x = at::arange(3, at::kDouble);
  one.sum(x);
  one.broadcast(x);
  EXPECT_TRUE(x.equal(at::arange(3, at::kDouble)));
  EXPECT_EQ(one.gather("a"), std::vector<std::string>{"a"});
  EXPECT_TRUE(one.any(true));
  EXPECT_FALSE(one.any(false));
  EXPECT_EQ(one.share(7).count(), 7);
}

TEST(RankGroup, SumsBroadcastsAndGathers) {
  const std::vector<std::string> faults = on_ranks(3, [](RankGroup& ranks) {
    const at::Tensor x = at::full({5}, ranks.rank() + 1, at::kDouble);
    ranks.sum(x);
    if (!x.equal(at::full({5}, 6, at::kDouble))) throw std::runtime_error("sum");
    const at::Tensor y = at::full({2}, ranks.rank() + 7, at::kFloat);
    ranks.broadcast(y);
    if (!y.equal(at::full({2}, 7, at::kFloat))) throw std::runtime_error("broadcast");
    if (ranks.gather(std::to_string(ranks.rank())) != std::vector<std::string>{"0", "1", "2"})
      throw std::runtime_error("gather");
    if (ranks.broadcast("of " + std::to_string(ranks.rank())) != "of 0") throw std::runtime_error("words");
    if (!ranks.any(ranks.rank() == 2) || ranks.any(false)) throw std::runtime_error("any");
  });
  EXPECT_THAT(faults, Each(""));
}

TEST(RankGroup, PutsPartsInTheirPlaces) {
  const std::vector<std::string> faults = on_ranks(3, [](RankGroup& ranks) {
    const at::Tensor expected = at::tensor({-0.5F, 1.5F, 1e-45F, INFINITY, -2.0F, 7.0F}),
                     mine = at::zeros({6});
    const Share here = ranks.share(6);
    mine.narrow(0, here.first, here.count()).copy_(expected.narrow(0, here.first, here.count()));
    ranks.put_together(mine);
    if (!mine.equal(expected)) throw std::runtime_error("parts");
    if (ranks.sum(0.25 * ranks.rank()) != 0.75) throw std::runtime_error("sum");
  });
  EXPECT_THAT(faults, Each(""));
}

// By hand: 10 float64 and 3 bytes; the others' pause is waited for, one's own isn't.
TEST(RankGroup, CountsWhatItSums) {
  const std::vector<std::string> faults = on_ranks(2, [](RankGroup& ranks) {
    ranks.sum(at::zeros({10}, at::kDouble));
    const RankTraffic before = ranks.traffic();
    if (before.sums != 1 || before.bytes != 80) throw std::runtime_error("sums");
    if (ranks.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(400));
    ranks.sum(at::zeros({3}, at::kByte));
    const RankTraffic more = ranks.traffic().since(before);
    if (more.sums != 1 || more.bytes != 3) throw std::runtime_error("since");
    if (ranks.rank() == 0 && more.waited < 0.3) throw std::runtime_error("waited");
  });
  EXPECT_THAT(faults, Each(""));
  EXPECT_EQ(RankGroup::alone().traffic().bytes, 0);
}

// The third computes nothing meanwhile, and all go on together afterwards; a second group is another.
TEST(RankGroup, TheFirstAreAGroupOfTheirOwn) {
  const std::vector<std::string> faults = on_ranks(3, [](RankGroup& ranks) {
    for (const double expected : {3.0, 1.0}) {
      const std::unique_ptr<RankGroup> two = ranks.first(expected > 1 ? 2 : 1);
      if ((two == nullptr) != (ranks.rank() >= (expected > 1 ? 2 : 1))) throw std::runtime_error("who");
      if (two) {
        if (two->sum(ranks.rank() + 1.0) != expected) throw std::runtime_error("sum");
        if (two->gather(std::to_string(two->rank())).size() != static_cast<size_t>(two->size()))
          throw std::runtime_error("gather");
        if (ranks.traffic().bytes != (expected > 1 ? 0 : 8)) throw std::runtime_error("counted twice");
        two->leave();
      }
      if (ranks.sum(1.0) != 3) throw std::runtime_error("all");
    }
  });
  EXPECT_THAT(faults, Each(""));
}

// 1,000 items on four ranks: in pieces of at most 300 one pass each, of 250; of at most 100 three passes, of 84.
TEST(RankGroup, PiecesAreEven) {
  EXPECT_THAT(on_ranks(4,
                       [](RankGroup& ranks) {
                         if (ranks.even_piece(1000, 300) != 250 || ranks.even_piece(1000, 100) != 84 ||
                             ranks.even_piece(3, 100) != 1)
                           throw std::runtime_error("piece");
                       }),
              Each(""));
  EXPECT_EQ(RankGroup::alone().even_piece(1000, 300), 300);
}

// Batches are divided so: nothing twice, nothing left out, in the order of ranks.
TEST(RankGroup, SharesCoverTheList) {
  std::mutex mutex;
  std::map<int, Share> shares;
  EXPECT_THAT(on_ranks(4,
                       [&](RankGroup& ranks) {
                         const std::lock_guard lock(mutex);
                         shares[ranks.rank()] = ranks.share(10);
                       }),
              Each(""));
  int64_t next = 0;
  for (const auto& [rank, share] : shares) {
    EXPECT_EQ(share.first, next);
    EXPECT_GE(share.count(), 2);
    EXPECT_LE(share.count(), 3);
    next = share.last;
  }
  EXPECT_EQ(next, 10);
}

TEST(RankGroup, DisagreementNamesBoth) {
  const std::vector<std::string> faults =
      on_ranks(3, [](RankGroup& ranks) { ranks.agree("the study", ranks.rank() == 2 ? "b" : "a"); });
  for (const std::string& fault : faults) {
    EXPECT_THAT(fault, HasSubstr("ranks disagree on the study: rank 0 (pid"));
    EXPECT_THAT(fault, HasSubstr("has a, rank 2 (pid"));
  }
}

// A fault of one rank ends the others with its reason, in the middle of a sum as well as before one.
TEST(RankGroup, AFaultReachesTheOthersWithItsReason) {
  for (const bool in_a_sum : {true, false}) {
    const Clock::time_point start = Clock::now();
    const std::vector<std::string> faults = on_ranks(3, [&](RankGroup& ranks) {
      if (ranks.rank() == 1) throw std::runtime_error("no memory left");
      if (in_a_sum) ranks.sum(at::ones({1 << 20}));
      ranks.gather("never complete");
    });
    EXPECT_EQ(faults[1], "no memory left");
    for (const int other : {0, 2}) {
      EXPECT_THAT(faults[static_cast<size_t>(other)], HasSubstr("rank 1 (pid"));
      EXPECT_THAT(faults[static_cast<size_t>(other)], HasSubstr("no memory left"));
    }
    EXPECT_LT(seconds_since(start), 30) << "a beat is a second: this must not wait for a timeout";
  }
}

// Looks of a millisecond end within sums of about as long, thousands of times: none of them is a rank that is lost. (Where work that ended
// after its last look had failed, each of four runs of this ended with "the connection to another rank broke".)
TEST(RankGroup, ASumThatEndsAsALookEndsIsNoLoss) {
  const auto sums = [](RankGroup& ranks) {
    for (int i = 0; i < 1500; ++i) ranks.sum(at::ones({1 << 16}));
    ranks.gather("done");
  };
  EXPECT_THAT(on_ranks(3, sums, 1e-3), Each(""));
}

TEST(RankGroup, RanksThatNeverComeAreNamed) {
  RankPlace place;
  place.size = place.local_size = 3;
  const std::string line = testing::message_of<RankLost>([&] { RankGroup::join(place, 1); });
  EXPECT_THAT(line, HasSubstr("1 of 3 ranks came within 1 s; missing: 1, 2"));
}

// Rank 2 is there and rank 1 is not. Rank 0 gives up first, and then rank 2 finds that it has gone.
TEST(RankGroup, ThoseThatCameAreCounted) {
  int port = 0;
  RankPlace first;
  first.size = first.local_size = 3;
  first.listening = listening_socket(port);
  first.port = port;
  RankPlace last = first;
  last.rank = 2;
  last.listening = std::nullopt;
  std::string said;
  std::thread other([&] { said = testing::message_of<RankLost>([&] { RankGroup::join(last, 3); }); });
  EXPECT_THAT(testing::message_of<RankLost>([&] { RankGroup::join(first, 2); }),
              HasSubstr("2 of 3 ranks came within 2 s; missing: 1"));
  other.join();
  EXPECT_EQ(said, "rank 0 is gone, or can't be reached any more");
}

TEST(RankGroup, TooFewFilesMayBeOpen) {
  RankPlace place;
  place.size = place.local_size = 1000;
  rlimit before{}, few{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  few.rlim_cur = few.rlim_max = std::min<rlim_t>(before.rlim_cur, 100);
  // For ever, so in a process that ends.
  const auto in_child = [&] {
    setrlimit(RLIMIT_NOFILE, &few);
    std::fputs(testing::message_of<ConfigError>([&] { RankGroup::join(place, 1); }).c_str(), stderr);
    _exit(0);
  };
  EXPECT_EXIT(in_child(), ::testing::ExitedWithCode(0),
              "each of 1000 ranks has 2032 files open at once, and 100 are allowed");
}

TEST(RankGroup, ASignalEndsTheWait) {
  install_interrupt_handlers();
  for (const int rank : {0, 1}) {  // waits for the other's name; for a meeting place
    RankPlace place;
    place.size = place.local_size = 2;
    place.rank = rank;
    place.port = 1;
    if (rank == 0) place.listening = listening_socket(place.port);
    std::thread other([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      kill(getpid(), SIGTERM);
    });
    const Clock::time_point start = Clock::now();
    EXPECT_THROW(RankGroup::join(place, 120), Interrupted) << rank;
    EXPECT_LT(seconds_since(start), 30) << rank << ": this must not wait for the timeout";
    other.join();
    reset_interrupt();
  }
}

TEST(RankGroup, NobodyAtTheMeetingPlace) {
  RankPlace place;
  place.size = 2;
  place.rank = 1;
  place.port = 1;
  EXPECT_THAT(testing::message_of<RankLost>([&] { RankGroup::join(place, 1); }),
              HasSubstr("rank 0 was not at 127.0.0.1:1"));
}

}  // namespace
}  // namespace basin
