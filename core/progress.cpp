#include "core/progress.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/clock.h"

namespace basin {

bool stderr_is_terminal() {
  const char* const type = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && type && std::string_view(type) != "dumb";
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "unknown";
  const auto s = static_cast<int64_t>(std::llround(seconds));
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {} s", s / 60, s % 60);
  return fmt::format("{} h {} min", s / 3600, s % 3600 / 60);
}

Progress::Progress(std::string what, double total, std::string unit, bool enabled, double plain_interval)
    : what_(std::move(what)),
      unit_(std::move(unit)),
      total_(total),
      plain_interval_(plain_interval),
      enabled_(enabled),
      terminal_(stderr_is_terminal()),
      start_(Clock::now()),
      last_drawn_(start_) {}

Progress::~Progress() {
  if (enabled_ && terminal_ && !finished_) std::fputs("\n", stderr);
}

void Progress::update(double done, const std::string& note) {
  done_ = done;
  if (!enabled_ || seconds_since(last_drawn_) < (terminal_ ? 0.1 : plain_interval_)) return;
  draw(note, false);
}

void Progress::finish(double done, const std::string& note) {
  if (finished_) return;
  finished_ = true;
  done_ = done;
  if (enabled_) draw(note, true);
}

void Progress::draw(const std::string& note, bool last) {
  last_drawn_ = Clock::now();
  const double elapsed = seconds_since(start_);
  const double rate = elapsed > 0 ? (done_ - begun_) / elapsed : 0;
  std::string line =
      fmt::format("{} {:.0f}/{:.0f} {}  {:.4g} {}/s", what_, done_, total_, unit_, rate, unit_);
  if (last)
    line += "  took " + format_duration(elapsed);
  else if (rate > 0)
    line += "  " + format_duration((total_ - done_) / rate) + " left";
  if (!note.empty()) line += "  " + note;
  if (terminal_)
    fmt::print(stderr, "\r\033[K{}{}", line, last ? "\n" : "");
  else
    fmt::print(stderr, "{}\n", line);
  std::fflush(stderr);
}

}  // namespace basin
