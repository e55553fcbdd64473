#include "apps/output/sweep_display.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "core/progress.h"

namespace basin {
namespace {

constexpr double kTerminalInterval = 0.2;
constexpr double kPlainInterval = 30;

size_t terminal_width() {
  winsize size = {};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

const char* to_string(Activity activity) {
  switch (activity) {
    case Activity::training:
      return "training";
    case Activity::probing:
      return "probing";
    case Activity::ending:
      return "ending";
  }
  return "";
}

std::string to_text(const WorkerLine& line) {
  std::string text = fmt::format("{} {}", to_string(line.activity), line.label);
  if (!line.probing.empty()) return text + "  " + line.probing;
  if (line.activity != Activity::training) return text;
  text += fmt::format("  update {}  {:.0f} %", line.update, 100 * line.done);
  if (line.images_per_second > 0) text += fmt::format("  {:.0f} images/s", line.images_per_second);
  if (std::isfinite(line.loss) && line.loss > 0) text += fmt::format("  loss {:.3g}", line.loss);
  return text;
}

SweepDisplay::SweepDisplay() : terminal_(stderr_is_terminal()), start_(Clock::now()), last_drawn_(start_) {}

SweepDisplay::~SweepDisplay() { clear(); }

void SweepDisplay::begin(const std::string& what) {
  what_ = what;
  start_ = last_drawn_ = Clock::now();
  shown_ = false;
}

void SweepDisplay::clear() {
  if (drawn_lines_ == 0) return;
  fmt::print(stderr, "\033[{}A\033[J", drawn_lines_);
  std::fflush(stderr);
  drawn_lines_ = 0;
}

void SweepDisplay::announce(const std::string& line) {
  clear();
  fmt::print(stderr, "{}\n", line);
  std::fflush(stderr);
}

std::string SweepDisplay::overall(const SweepState& state) const {
  std::string text = fmt::format("{}  {}/{} runs", what_, state.done, state.total);
  if (state.failed > 0) text += fmt::format(", {} failed", state.failed);
  text += "  " + format_duration(seconds_since(start_));
  if (std::isfinite(state.seconds_left)) text += ", about " + format_duration(state.seconds_left) + " left";
  return text;
}

void SweepDisplay::update(const SweepState& state) {
  const bool first = !std::exchange(shown_, true);
  if (!(first && terminal_) && seconds_since(last_drawn_) < (terminal_ ? kTerminalInterval : kPlainInterval))
    return;
  last_drawn_ = Clock::now();
  std::vector<std::string> lines = {overall(state)};
  for (const WorkerLine& worker : state.workers) lines.push_back("  " + to_text(worker));
  for (const std::string& note : state.notes) lines.push_back("  " + note);
  if (!terminal_) {
    std::string plain = lines.front();
    for (size_t i = 1; i < lines.size(); ++i) plain += " |" + lines[i];
    announce(plain);
    return;
  }
  clear();
  const size_t width = terminal_width();
  for (const std::string& line : lines) fmt::print(stderr, "{}\n", line.substr(0, width - 1));
  std::fflush(stderr);
  drawn_lines_ = static_cast<int64_t>(lines.size());
}

}  // namespace basin
