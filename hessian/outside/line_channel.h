// defines: LineChannel, lines of text to and from the process that answers; PartnerError.
#pragma once

#include <cstddef>
#include <string>

#include "core/error.h"

namespace basin {

/// The process that answers ended, fell silent, or said something that makes no sense: one line. Nothing further can be
/// measured.
struct PartnerError : DataError {
  /// What the other process said may be quoted: line ends and other control characters become "?".
  explicit PartnerError(std::string message);
};

/// Lines over a socket. The end of the other process is the end of the file, at once; a process that hangs is one that
/// sends nothing for `silence` seconds, though a thread of it is to send a sign of life every silence / 4. A question
/// that takes long is neither. SIGINT and SIGTERM end the waiting within a second (core/interrupt.h).
class LineChannel {
 public:
  /// The descriptor is closed with the object.
  LineChannel(int descriptor, double silence);
  ~LineChannel();
  LineChannel(const LineChannel&) = delete;
  LineChannel& operator=(const LineChannel&) = delete;

  double silence() const { return silence_; }
  /// PartnerError where nobody is there to read.
  void send(const std::string& line);
  /// The next line, without its end.
  std::string receive();

 private:
  void wait_for(short event) const;

  int descriptor_;
  double silence_;
  std::string unread_;
  size_t searched_ = 0;  // of unread_: no line ends before
};

}  // namespace basin
