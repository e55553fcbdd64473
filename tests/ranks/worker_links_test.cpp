// A parameter server and its workers: whom it takes when, and who is missed.
#include "ranks/worker_links.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "ranks/local_ranks.h"
#include "tests/support/rank_threads.h"

namespace basin {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using testing::on_ranks;

constexpr int64_t kWeights = 5;

/// Gradients of ones as long as there are orders. Whether the ranks part.
bool work(const RankGroup& ranks) {
  ServerLink server(ranks, kWeights, at::kFloat);
  while (server.pull()) server.push(1.0, at::ones({kWeights}));
  return server.parts();
}

// All three are back before the server looks again, so that each is served in its turn.
TEST(WorkerLinks, ABusyServerPassesNobodyOver) {
  std::vector<int> pushes(3);
  const std::vector<std::string> faults = on_ranks(4, [&](RankGroup& ranks) {
    if (!ranks.is_first()) {
      EXPECT_FALSE(work(ranks));
      return;
    }
    WorkerLinks workers(ranks, kWeights, at::kFloat);
    const at::Tensor weights = at::zeros({kWeights});
    for (int64_t worker = 0; worker < 3; ++worker) workers.send(worker, {}, weights);
    for (int update = 0; update < 30; ++update) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const WorkerEvent event = workers.receive();
      EXPECT_EQ(event.lost, "");
      EXPECT_EQ(event.loss, 1.0);
      EXPECT_THAT(event.seconds, AllOf(Ge(0), Le(30)));
      EXPECT_TRUE(event.gradient.equal(at::ones({kWeights})));
      ++pushes.at(static_cast<size_t>(event.worker));
      workers.send(event.worker, {}, weights);
    }
    EXPECT_FALSE(workers.finish());
  });
  EXPECT_THAT(faults, Each(""));
  EXPECT_THAT(pushes, Each(Ge(5))) << "of ten; one that was slow for once misses a turn";
}

TEST(WorkerLinks, OneThatFailsBeforeTheyMeetEndsTheOthers) {
  const std::vector<std::string> faults = on_ranks(3, [&](RankGroup& ranks) {
    if (ranks.rank() == 2) throw std::runtime_error("no memory for its network");
    if (ranks.is_first()) WorkerLinks(ranks, kWeights, at::kFloat);
    if (!ranks.is_first()) work(ranks);
  });
  EXPECT_THAT(faults, Each(HasSubstr("no memory for its network")));
}

TEST(WorkerLinks, OneThatFailsSaysWhy) {
  const std::vector<std::string> faults = on_ranks(3, [&](RankGroup& ranks) {
    if (ranks.rank() == 2) {
      ServerLink server(ranks, kWeights, at::kFloat);
      server.pull();
      server.fail("no memory for a gradient");
    } else if (ranks.rank() == 1) {
      EXPECT_TRUE(work(ranks));
    } else {
      WorkerLinks workers(ranks, kWeights, at::kFloat);
      for (const int64_t worker : {0, 1}) workers.send(worker, {}, at::zeros({kWeights}));
      std::vector<std::string> lost(2);
      for (int event = 0; event < 2; ++event) {
        const WorkerEvent next = workers.receive();
        lost.at(static_cast<size_t>(next.worker)) = next.lost;
      }
      EXPECT_EQ(lost[0], "");
      EXPECT_THAT(lost[1], AllOf(HasSubstr("rank 2"), HasSubstr("no memory for a gradient")));
      EXPECT_TRUE(workers.finish());
    }
  });
  EXPECT_THAT(faults, Each(""));
}

// A process that ends after its last push: the worker that is asked before it hears of that as well.
TEST(WorkerLinks, OneThatIsGoneByTheEndPartsTheOthers) {
  int port = 0;
  const int listening = listening_socket(port);
  const auto join = [&](int rank) {
    return RankGroup::join(testing::local_place(rank, 3, port, listening), 30);
  };
  const pid_t gone = fork();
  if (gone == 0) try {
      const std::unique_ptr<RankGroup> ranks = join(2);
      ServerLink server(*ranks, kWeights, at::kFloat);
      server.pull();
      server.push(1.0, at::ones({kWeights}));
      _exit(0);
    } catch (const std::exception&) {
      _exit(1);  // not back into the tests
    }
  bool parts = false;
  std::thread other([&] {
    const std::unique_ptr<RankGroup> ranks = join(1);
    parts = work(*ranks);
    ranks->part();
  });
  const std::unique_ptr<RankGroup> ranks = join(0);
  WorkerLinks workers(*ranks, kWeights, at::kFloat);
  for (const int64_t worker : {0, 1}) workers.send(worker, {}, at::zeros({kWeights}));
  for (int push = 0; push < 2; ++push) EXPECT_EQ(workers.receive().lost, "");
  waitpid(gone, nullptr, 0);
  EXPECT_TRUE(workers.finish());
  ranks->part();
  other.join();
  EXPECT_TRUE(parts);
}

TEST(WorkerLinks, TooFewFilesMayBeOpen) {
  const auto serve = [](RankGroup& ranks) {
    ranks.any(false);  // the other has the files that it needs
    if (ranks.rank() > 0) return;
    const rlimit few{50, 50};  // the ranks have theirs
    setrlimit(RLIMIT_NOFILE, &few);
    WorkerLinks(ranks, 1, at::kFloat);
  };
  const auto in_child = [&] {
    std::fputs(testing::on_ranks(2, serve)[0].c_str(), stderr);
    _exit(0);
  };
  EXPECT_EXIT(in_child(), ::testing::ExitedWithCode(0),
              "the server of 2 ranks has 51 files open at once, and 50 are allowed");
}

}  // namespace
}  // namespace basin
