#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "core/error.h"
#include "core/files.h"
#include "core/hash.h"
#include "core/interrupt.h"
#include "core/progress.h"
#include "core/provenance.h"
#include "core/runtime.h"
#include "core/seed.h"

namespace basin {
namespace {

namespace fs = std::filesystem;

class Folder : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = fs::temp_directory_path() /
            fmt::format("basin-core-{}-{}", ::getpid(),
                        ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(path_);
  }
  void TearDown() override { fs::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  fs::path path_;
};

TEST(Hash, MatchesThePublishedTestVectors) {
  // FIPS 180-2 appendix B.1 and the empty message; CRC-32's check value (ITU-T V.42).
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(crc32_of("123456789", 9), 0xCBF43926u);
}

TEST(Hash, PiecesGiveTheSameDigestAsTheWhole) {
  Sha256 hash;
  hash.update("a");
  hash.update("bc");
  EXPECT_EQ(hash.hex_digest(), sha256_hex("abc"));
}

TEST(Seed, StreamsAreFixedForEverAndDiffer) {
  // python3 -c "import hashlib; print(int(hashlib.sha256(b'basin/1/init/0').hexdigest()[:16], 16))"
  EXPECT_EQ(derive_seed(1, "init"), 18409140730426467672ull);
  std::set<uint64_t> seeds;
  for (const char* stream : {"init", "data-order", "augmentation", "flip", "cutout", "dropout", "probe"})
    for (uint64_t index = 0; index < 10; ++index) seeds.insert(derive_seed(1, stream, index));
  EXPECT_EQ(seeds.size(), 70u);
  EXPECT_NE(derive_seed(1, "init"), derive_seed(2, "init"));
}

TEST(Seed, GeneratorsWithOneSeedDrawTheSame) {
  at::Generator a = make_generator(7), b = make_generator(7), c = make_generator(8);
  const auto draw = [](at::Generator& g) { return at::randn({16}, g); };
  const at::Tensor first = draw(a);
  EXPECT_TRUE(first.equal(draw(b)));
  EXPECT_FALSE(first.equal(draw(c)));
}

TEST_F(Folder, AtomicWriteReplacesTheWholeFileAndLeavesNoTemporary) {
  write_file_atomically(file("a"), "old");
  write_file_atomically(file("a"), "new");
  EXPECT_EQ(read_file(file("a")), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(path_), fs::directory_iterator()), 1);
}

TEST_F(Folder, AWriterThatFailsLeavesTheOldFileUntouched) {
  write_file_atomically(file("a"), "old");
  EXPECT_THROW(replace_file_atomically(file("a"),
                                       [](const std::string& temporary) {
                                         std::ofstream(temporary) << "half";
                                         throw IoError("disk full");
                                       }),
               IoError);
  EXPECT_EQ(read_file(file("a")), "old");
  EXPECT_FALSE(fs::exists(file("a.tmp")));
}

// The second begins while the first is between writing and renaming, and must neither take its temporary file away nor fail.
TEST_F(Folder, ASecondWriterOfOneFileWaitsForTheFirst) {
  std::jthread second;
  std::atomic<bool> done = false;
  replace_file_atomically(file("a"), [&](const std::string& temporary) {
    write_file(temporary, "first");
    second = std::jthread([&] {
      EXPECT_NO_THROW(write_file_atomically(file("a"), "second"));
      done = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_FALSE(done);
    EXPECT_EQ(read_file(temporary), "first");
  });
  second.join();
  EXPECT_EQ(read_file(file("a")), "second");
  EXPECT_EQ(std::distance(fs::directory_iterator(path_), fs::directory_iterator()), 1);
}

TEST_F(Folder, AWriterThatFailsLetsTheNextOneWrite) {
  std::jthread second;
  EXPECT_THROW(replace_file_atomically(file("a"),
                                       [&](const std::string& temporary) {
                                         write_file(temporary, "half");
                                         second = std::jthread([&] {
                                           EXPECT_NO_THROW(write_file_atomically(file("a"), "second"));
                                         });
                                         std::this_thread::sleep_for(std::chrono::milliseconds(50));
                                         throw IoError("disk full");
                                       }),
               IoError);
  second.join();
  EXPECT_EQ(read_file(file("a")), "second");
  EXPECT_FALSE(fs::exists(file("a.tmp")));
}

TEST_F(Folder, ProcessesThatWriteOneFileLeaveAWholeOne) {
  const auto text_of = [](int writer) {
    return std::string(static_cast<size_t>(1000 + 50000 * writer), static_cast<char>('a' + writer));
  };
  std::vector<pid_t> writers;
  for (int writer = 0; writer < 4; ++writer) {
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        for (int i = 0; i < 50; ++i) write_file_atomically(file("a"), text_of(writer));
      } catch (const IoError& error) {
        std::fprintf(stderr, "%s\n", error.what());
        ::_exit(1);
      }
      ::_exit(0);
    }
    writers.push_back(child);
  }
  for (const pid_t child : writers) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  const std::string left = read_file(file("a"));
  EXPECT_EQ(left, text_of(left.at(0) - 'a'));
  EXPECT_EQ(std::distance(fs::directory_iterator(path_), fs::directory_iterator()), 1);
}

// A killed writer's lock is free and what it left is written over.
TEST_F(Folder, WhatAKilledWriterLeftIsWrittenOver) {
  const pid_t child = ::fork();
  if (child == 0) {
    replace_file_atomically(file("a"), [](const std::string& temporary) {
      write_file(temporary, "a long text that was not finished");
      ::raise(SIGKILL);
    });
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(fs::exists(file("a.tmp")));
  write_file_atomically(file("a"), "new");
  EXPECT_EQ(read_file(file("a")), "new");
  EXPECT_FALSE(fs::exists(file("a.tmp")));
}

TEST_F(Folder, ReadingSaysWhichFileAndWhy) {
  try {
    read_file(file("missing"));
    FAIL();
  } catch (const IoError& error) {
    EXPECT_EQ(std::string(error.what()), "cannot read " + file("missing") + ": No such file or directory");
    EXPECT_EQ(error.exit_code(), 4);
  }
  EXPECT_THROW(read_file(path_.string()), IoError);
}

TEST(Interrupt, ASignalIsRememberedAndThrownWhereTheLoopLooks) {
  install_interrupt_handlers();
  EXPECT_NO_THROW(throw_if_interrupted());
  ::raise(SIGINT);
  EXPECT_EQ(interrupt_signal(), SIGINT);
  try {
    throw_if_interrupted();
    FAIL();
  } catch (const Interrupted& error) {
    EXPECT_EQ(error.exit_code(), 130);
  }
  reset_interrupt();
}

TEST(Interrupt, WhatKeepsNoStateEndsAtOnce) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const pid_t child = ::fork();
    if (child == 0) {
      exit_on_interrupt();
      ::raise(signal);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 128 + signal);
  }
}

std::string provenance(const std::string& name) {
  for (const auto& [key, value] : collect_provenance()) {
    if (key == name) return value;
  }
  return "missing";
}

TEST(Provenance, SaysWhoWithWhatAndWhere) {
  for (const char* name :
       {"git_commit", "git_dirty", "cwd", "host", "user", "pid", "compiler", "flags", "libtorch", "libraries",
        "cuda", "cudnn", "cpu", "gpu", "driver", "num_threads", "tf32", "deterministic", "started_utc"}) {
    EXPECT_NE(provenance(name), "missing") << name;
    EXPECT_NE(provenance(name), "") << name;
  }
  EXPECT_EQ(provenance("pid"), std::to_string(::getpid()));
  EXPECT_EQ(provenance("cuda") == "none", !at::hasCUDA());
}

TEST(Provenance, Tf32IsWhatTheLibraryIsSetTo) {
  at::globalContext().setAllowTF32CuBLAS(true);
  EXPECT_EQ(provenance("tf32"), "on");
  apply_runtime({"cpu", 1, false});
  EXPECT_EQ(provenance("tf32"), "off");
}

TEST(Progress, DurationsReadAsAPersonWouldSayThem) {
  EXPECT_EQ(format_duration(45.4), "45 s");
  EXPECT_EQ(format_duration(190), "3 min 10 s");
  EXPECT_EQ(format_duration(7500), "2 h 5 min");
  EXPECT_EQ(format_duration(NAN), "unknown");
}

TEST(Progress, PipedOutputIsPlainLines) {
  ::testing::internal::CaptureStderr();
  Progress progress("eating", 4, "cakes", true, 0.0);
  progress.update(1, "sweet");
  progress.finish(3, "full");
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, ::testing::HasSubstr("eating 1/4 cakes"));
  EXPECT_THAT(text, ::testing::HasSubstr("sweet\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("eating 3/4 cakes .*full\n"));  // how far it came, in any case
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("\r")));
}

// 1000 updates of an earlier process, none of this one: the rate is 0, not 1000 by the milliseconds that this test takes.
TEST(Progress, WhatAnEarlierProcessDidIsNoPartOfTheRate) {
  ::testing::internal::CaptureStderr();
  Progress progress("train", 4000, "updates", true, 0.0);
  progress.resume_at(1000);
  progress.update(1000);
  progress.finish(1000);
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, ::testing::HasSubstr("train 1000/4000 updates  0 updates/s\n"));
  EXPECT_THAT(text, ::testing::HasSubstr("train 1000/4000 updates  0 updates/s  took 0 s\n"));
}

}  // namespace
}  // namespace basin
