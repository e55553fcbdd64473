// defines: the framing of a journal: magic, version, length and CRC of each frame; the kinds of frame.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace basin {

inline constexpr std::string_view kJournalMagic = "BASINJNL";
inline constexpr uint32_t kJournalVersion = 1;
inline constexpr size_t kJournalStart = 12;  // magic and version: where the first frame begins
inline constexpr size_t kFrameHead = 8;      // length and CRC-32

/// First byte of a frame's payload.
enum class FrameKind : uint8_t { header = 1, table, row, outcomes, summary, status, event };
inline constexpr uint8_t kLastFrameKind = static_cast<uint8_t>(FrameKind::event);

struct Frame {
  uint64_t start;            // of its head, in bytes from the file's start
  std::string_view payload;  // kind included; points into the journal's bytes
};

/// Magic and version.
std::string journal_start();
/// Length, CRC and payload.
std::string framed(std::string_view payload);

/// The frames of a journal. `torn` is set where the last one was cut off by a crash; it is left out. IoError for a foreign
/// magic, a newer version, and damage anywhere but in the last frame, with file and byte.
std::vector<Frame> split_frames(const std::string& path, std::string_view journal, bool* torn);

}  // namespace basin
