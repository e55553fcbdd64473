#include "io/journal.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/files.h"
#include "io/journal_codec.h"
#include "tests/io/samples.h"
#include "tests/support/temporary_folder.h"

namespace basin {
namespace {

using testing::expect_io_error;
using testing::expect_same;
using testing::sample_run;
using testing::TemporaryFolder;
using testing::write_bytes;

Table one_column_table() {
  return {"t", "table", {{"step", "1", "step", "step", 1, {}}, {"x", "1", "x", "x", 1, {}}}, {}};
}

void write_all(JournalWriter& journal, const RunRecord& run) {
  for (const auto& [name, table] : run.tables) {
    journal.define_table(table);
    for (int64_t row = 0; row < table.row_count(); ++row) {
      const auto start = table.rows.begin() + row * table.row_width();
      journal.append_row(name, {start, start + table.row_width()});
    }
  }
  for (const auto& [split, outcomes] : run.outcomes) journal.append_outcomes(split, outcomes);
  for (const RunRecord::Event& event : run.events) journal.append_event(event.level, event.text);
  journal.set_summary(run.summary);
  journal.set_status(run.status, run.status_message);
}

/// A header, a table and rows 0..n-1; returns where each frame ends.
std::vector<uint64_t> write_rows(const std::string& path, int n) {
  JournalWriter journal = JournalWriter::create(path, sample_run().header);
  std::vector<uint64_t> ends{journal.offset()};
  journal.define_table(one_column_table());
  ends.push_back(journal.offset());
  for (int i = 0; i < n; ++i) {
    journal.append_row("t", {double(i), 0.5 * i});
    ends.push_back(journal.offset());
  }
  return ends;
}

/// CRC-32 by its definition, bit by bit (polynomial 0xEDB88320).
uint32_t bitwise_crc(const std::string& bytes) {
  uint32_t crc = 0xFFFFFFFFu;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

uint32_t u32_at(const std::string& bytes, size_t position) {
  uint32_t value = 0;
  for (int i = 3; i >= 0; --i)
    value = value << 8 | static_cast<uint8_t>(bytes.at(position + static_cast<size_t>(i)));
  return value;
}

TEST(Journal, TableFramesFromBeforeTheyHadAttributesAreRead) {
  JournalDecoder decoder;
  decoder.take(encode_header(sample_run().header, journal_now()));
  std::string frame = encode_table(one_column_table());
  ASSERT_EQ(frame.substr(frame.size() - 4), std::string(4, '\0')) << "the number of attributes";
  decoder.take(std::string_view(frame).substr(0, frame.size() - 4));
  EXPECT_EQ(decoder.record().tables.at("t").columns.size(), 2u);
}

TEST(Journal, EverythingReplays) {
  TemporaryFolder folder;
  const RunRecord run = sample_run();
  JournalWriter journal = JournalWriter::create(folder / "journal", run.header);
  write_all(journal, run);
  EXPECT_EQ(journal.offset(), std::filesystem::file_size(folder / "journal"));
  bool torn = true;
  const RunRecord replayed = replay_journal(folder / "journal", &torn);
  EXPECT_FALSE(torn);
  expect_same(run, replayed);
  EXPECT_GE(replayed.events[0].seconds, 0);
  EXPECT_LT(replayed.events[1].seconds, 60);
  EXPECT_THAT(replayed.updated_utc, ::testing::MatchesRegex("....-..-..T..:..:..Z"));
}

TEST(Journal, FramesAreAsDocumented) {
  TemporaryFolder folder;
  const std::vector<uint64_t> ends = write_rows(folder / "journal", 1);
  const std::string bytes = read_file(folder / "journal");
  EXPECT_EQ(bytes.substr(0, 8), "BASINJNL");
  EXPECT_EQ(u32_at(bytes, 8), 1u);
  uint64_t start = 12;
  for (const uint64_t end : ends) {
    EXPECT_EQ(u32_at(bytes, start), end - start - 8);
    EXPECT_EQ(u32_at(bytes, start + 4), bitwise_crc(bytes.substr(start + 8, end - start - 8)));
    start = end;
  }
  // The row: kind 3, table 0, two entries 0 and 0.
  EXPECT_EQ(bytes.substr(ends[1] + 8), std::string("\x03\0\0\x02\0\0\0\0\0\0\0", 11) + std::string(16, '\0'));
}

TEST(Journal, ATornLastFrameIsDroppedWhereverItBreaks) {
  TemporaryFolder folder;
  const std::vector<uint64_t> ends = write_rows(folder / "journal", 3);
  const std::string bytes = read_file(folder / "journal");
  const uint64_t start = ends[ends.size() - 2];
  for (uint64_t size = start; size <= bytes.size(); ++size) {
    write_bytes(folder / "cut", bytes.substr(0, size));
    bool torn = false;
    const RunRecord run = replay_journal(folder / "cut", &torn);
    EXPECT_EQ(torn, size != start && size != bytes.size()) << size;
    EXPECT_EQ(run.tables.at("t").row_count(), size == bytes.size() ? 3 : 2) << size;
  }
}

TEST(Journal, PagesThatNeverReachedTheDiskAreATornEndToo) {
  TemporaryFolder folder;
  const std::vector<uint64_t> ends = write_rows(folder / "journal", 3);
  std::string bytes = read_file(folder / "journal");
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(ends[3] + 20), bytes.end(),
            '\0');  // full length, zeros at the end
  bytes[ends[3] + 19] = 1;
  write_bytes(folder / "zeros", bytes);
  bool torn = false;
  EXPECT_EQ(replay_journal(folder / "zeros", &torn).tables.at("t").row_count(), 2);
  EXPECT_TRUE(torn);
  write_bytes(folder / "tail", bytes.substr(0, ends[3]) + std::string(4096, '\0'));
  EXPECT_EQ(replay_journal(folder / "tail", &torn).tables.at("t").row_count(), 2);
  EXPECT_TRUE(torn);
}

TEST(Journal, AFlippedBitAnywhereButInTheLastFrameIsAnErrorWithItsByte) {
  TemporaryFolder folder;
  const std::vector<uint64_t> ends = write_rows(folder / "journal", 3);
  const std::string bytes = read_file(folder / "journal");
  uint64_t start = 12;
  for (size_t frame = 0; frame + 1 < ends.size(); ++frame) {
    for (uint64_t byte = start; byte < ends[frame]; ++byte) {
      std::string flipped = bytes;
      flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << (byte % 8)));
      write_bytes(folder / "flipped", flipped);
      expect_io_error([&] { replay_journal(folder / "flipped"); },
                      {"flipped", fmt::format("damaged at byte {}", start)});
    }
    start = ends[frame];
  }
}

TEST(Journal, ForeignAndNewerFilesAreRefused) {
  TemporaryFolder folder;
  write_rows(folder / "journal", 1);
  std::string bytes = read_file(folder / "journal");
  bytes[8] = 2;
  write_bytes(folder / "newer", bytes);
  expect_io_error([&] { replay_journal(folder / "newer"); }, {"newer", "journal format 2", "reads 1"});
  write_bytes(folder / "foreign", "\x89HDF\r\n\x1a\n and so on");
  expect_io_error([&] { replay_journal(folder / "foreign"); }, {"foreign", "not a Basin journal"});
  write_bytes(folder / "empty", "");
  expect_io_error([&] { replay_journal(folder / "empty"); }, {"empty", "not a Basin journal (0 bytes)"});
  write_bytes(folder / "short", bytes.substr(0, 5));
  expect_io_error([&] { replay_journal(folder / "short"); }, {"short", "not a Basin journal (5 bytes)"});
  bytes[8] = 1;
  write_bytes(folder / "headless", bytes.substr(0, 12));
  expect_io_error([&] { replay_journal(folder / "headless"); }, {"headless", "before its header"});
  expect_io_error([&] { replay_journal(folder / "missing"); }, {"missing", "No such file"});
}

TEST(Journal, ResumeCutsTheFileAndGoesOnAsIfNothingHadHappened) {
  TemporaryFolder folder;
  const std::vector<uint64_t> ends = write_rows(folder / "journal", 3);
  const std::string whole = read_file(folder / "journal");
  for (const std::string& tail : {std::string(), std::string("torn")}) {
    write_bytes(folder / "again", whole + tail);
    JournalWriter journal = JournalWriter::resume(folder / "again", ends[2]);
    EXPECT_EQ(journal.offset(), ends[2]);
    EXPECT_EQ(std::filesystem::file_size(folder / "again"), ends[2]);
    journal.define_table(one_column_table());  // known: no second definition
    journal.append_row("t", {1, 0.5});
    journal.append_row("t", {2, 1});
    EXPECT_EQ(read_file(folder / "again"), whole);
  }
}

TEST(Journal, ResumeRefusesAJournalThatDoesNotFitTheCheckpoint) {
  TemporaryFolder folder;
  const std::vector<uint64_t> ends = write_rows(folder / "journal", 3);
  expect_io_error([&] { JournalWriter::resume(folder / "journal", ends.back() + 1); },
                  {"journal", fmt::format("{} bytes", ends.back()), fmt::format("byte {}", ends.back() + 1)});
  expect_io_error([&] { JournalWriter::resume(folder / "journal", ends[2] + 3); },
                  {"journal", "no frame ends"});
  expect_io_error([&] { JournalWriter::resume(folder / "missing", 12); }, {"missing", "No such file"});
  EXPECT_EQ(std::filesystem::file_size(folder / "journal"), ends.back())
      << "a refused resume changes nothing";
}

TEST(Journal, IsBegunOnce) {
  TemporaryFolder folder;
  JournalWriter journal = JournalWriter::create(folder / "journal", sample_run().header);
  expect_io_error([&] { JournalWriter::create(folder / "journal", sample_run().header); },
                  {"journal", "exists"});
}

TEST(Journal, KeepsWhatAKilledProcessHadWritten) {
  TemporaryFolder folder;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    JournalWriter journal = JournalWriter::create(folder / "journal", sample_run().header);
    journal.define_table(one_column_table());
    for (int i = 0; i < 5; ++i) journal.append_row("t", {double(i), 1});
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(replay_journal(folder / "journal").tables.at("t").row_count(), 5);
}

TEST(Journal, RowsOfAnotherShapeAreRefused) {
  TemporaryFolder folder;
  JournalWriter journal = JournalWriter::create(folder / "journal", sample_run().header);
  EXPECT_THROW(journal.append_row("t", {1, 2}), c10::Error);
  journal.define_table(one_column_table());
  EXPECT_THROW(journal.append_row("t", {1}), c10::Error);
}

}  // namespace
}  // namespace basin
