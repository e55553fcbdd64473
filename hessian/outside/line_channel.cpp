#include "hessian/outside/line_channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>

#include "core/clock.h"
#include "core/interrupt.h"

namespace basin {
namespace {

constexpr size_t kLongestLine = size_t{256} << 20;  // a hello names every parameter
constexpr double kSlice = 0.5;                      // seconds between two looks for a signal

std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; }, '?');
  return text;
}

[[noreturn]] void ended() { throw PartnerError("the process that answers ended"); }

}  // namespace

PartnerError::PartnerError(std::string message) : DataError(printable(std::move(message))) {}

LineChannel::LineChannel(int descriptor, double silence) : descriptor_(descriptor), silence_(silence) {}

LineChannel::~LineChannel() { ::close(descriptor_); }

void LineChannel::wait_for(short event) const {
  const Clock::time_point start = Clock::now();
  while (true) {
    throw_if_interrupted();
    pollfd wanted{descriptor_, event, 0};
    const double left = silence_ - seconds_since(start);
    const int ready = ::poll(&wanted, 1, static_cast<int>(std::clamp(left, 0.0, kSlice) * 1000));
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR)
      throw PartnerError(fmt::format("the process that answers can't be reached: {}", std::strerror(errno)));
    if (left <= 0)
      throw PartnerError(
          fmt::format("the process that answers has given no sign of life for {:g} s", silence_));
  }
}

void LineChannel::send(const std::string& line) {
  const std::string text = line + "\n";
  size_t sent = 0;
  while (sent < text.size()) {
    wait_for(POLLOUT);
    const ssize_t n =
        ::send(descriptor_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      sent += static_cast<size_t>(n);
    } else if (errno != EINTR && errno != EAGAIN) {
      ended();
    }
  }
}

std::string LineChannel::receive() {
  std::array<char, 65536> buffer{};
  while (true) {
    const size_t end = unread_.find('\n', searched_);
    if (end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      searched_ = 0;
      return line;
    }
    searched_ = unread_.size();
    if (searched_ > kLongestLine) throw PartnerError("the process that answers sent a line without an end");
    wait_for(POLLIN);
    const ssize_t n = ::recv(descriptor_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n > 0) {
      unread_.append(buffer.data(), static_cast<size_t>(n));
    } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
      ended();
    }
  }
}

}  // namespace basin
