// defines: JournalWriter and replay_journal(), the append-only journal from which run.h5 is made.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/record.h"

namespace basin {

/// Binary file of frames: u32 length, u32 CRC-32 of the payload, payload (first byte the kind); little-endian; the file opens
/// with an 8-byte magic and a format version. Frames: header, table definition, row, outcomes, summary, status, event.
class JournalWriter {
 public:
  /// Creates (fails where one exists) and writes the header.
  static JournalWriter create(const std::string& path, const RunHeader& header);
  /// Opens for appending after cutting the file to `offset` bytes (the checkpoint's journal_offset).
  static JournalWriter resume(const std::string& path, uint64_t offset);
  JournalWriter(JournalWriter&&) noexcept;
  JournalWriter& operator=(JournalWriter&&) noexcept;
  ~JournalWriter();

  void define_table(const Table& definition);  // rows ignored
  void append_row(const std::string& table, const std::vector<double>& row);
  void append_outcomes(const std::string& split, const ExampleOutcomes& outcomes);
  void set_summary(const std::vector<std::pair<std::string, OptionValue>>& summary);
  void set_status(RunState status, const std::string& message);
  void append_event(const std::string& level, const std::string& text);

  /// Bytes written so far, flushed to the system; what a checkpoint remembers.
  uint64_t offset();
  /// fsync; called by sync_if_due() every 10 s.
  void sync();
  void sync_if_due();

 private:
  struct State;
  explicit JournalWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Rebuilds the record. A torn last frame (crash) is dropped and `torn` says so; a bad CRC anywhere else, a foreign magic or a
/// newer version is an IoError naming file and byte.
RunRecord replay_journal(const std::string& path, bool* torn = nullptr);

}  // namespace basin
