#include "io/journal_frames.h"

#include "core/error.h"
#include "core/hash.h"
#include "io/bytes.h"

namespace basin {
namespace {

enum class FrameState { whole, cut_off, damaged };

struct FrameView {
  FrameState state;
  std::string_view payload;
};

FrameView frame_at(std::string_view journal, size_t start) {
  const size_t left = journal.size() - start;
  if (left < kFrameHead) return {FrameState::cut_off, {}};
  ByteReader head(journal.substr(start, kFrameHead));
  const uint32_t length = head.number<uint32_t>(), crc = head.number<uint32_t>();
  if (length > left - kFrameHead) return {FrameState::cut_off, {}};
  const std::string_view payload = journal.substr(start + kFrameHead, length);
  if (length == 0 || static_cast<uint8_t>(payload[0]) > kLastFrameKind || payload[0] == 0) {
    return {FrameState::damaged, payload};
  }
  if (crc32_of(payload.data(), payload.size()) != crc) return {FrameState::damaged, payload};
  return {FrameState::whole, payload};
}

/// A crash can leave a prefix of the last frame, its full length with unwritten pages, or zeros. Whatever has a whole frame
/// behind it is no torn end but damage: a changed length would otherwise hide everything that follows.
bool is_torn_end(std::string_view journal, size_t start) {
  for (size_t later = start + 1; later + kFrameHead < journal.size(); ++later) {
    if (frame_at(journal, later).state == FrameState::whole) return false;
  }
  const FrameView frame = frame_at(journal, start);
  const bool reaches_end =
      frame.state == FrameState::cut_off || start + kFrameHead + frame.payload.size() == journal.size();
  return reaches_end || journal.find_first_not_of('\0', start) == std::string_view::npos;
}

void check_start(const std::string& path, std::string_view journal) {
  if (journal.substr(0, kJournalMagic.size()) != kJournalMagic || journal.size() < kJournalStart) {
    throw IoError(fmt::format("{}: not a Basin journal ({} bytes)", path, journal.size()));
  }
  const uint32_t version = ByteReader(journal.substr(kJournalMagic.size(), 4)).number<uint32_t>();
  if (version != kJournalVersion) {
    throw IoError(
        fmt::format("{}: journal format {}; this program reads {}", path, version, kJournalVersion));
  }
}

}  // namespace

std::string journal_start() {
  ByteWriter version;
  version.number(kJournalVersion);
  return std::string(kJournalMagic) + version.bytes();
}

std::string framed(std::string_view payload) {
  ByteWriter head;
  head.number(static_cast<uint32_t>(payload.size()));
  head.number(crc32_of(payload.data(), payload.size()));
  return head.bytes() + std::string(payload);
}

std::vector<Frame> split_frames(const std::string& path, std::string_view journal, bool* torn) {
  check_start(path, journal);
  *torn = false;
  std::vector<Frame> frames;
  for (size_t start = kJournalStart; start < journal.size();) {
    const FrameView frame = frame_at(journal, start);
    if (frame.state != FrameState::whole) {
      if (!is_torn_end(journal, start)) throw IoError(fmt::format("{}: damaged at byte {}", path, start));
      *torn = true;
      break;
    }
    frames.push_back({start, frame.payload});
    start += kFrameHead + frame.payload.size();
  }
  return frames;
}

}  // namespace basin
