// defines: SweepDisplay, where a sweep stands: redrawn in place on a terminal, plain lines when piped.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/clock.h"

namespace basin {

struct WorkerLine {
  std::string label;
  std::string activity;  // "training", "probing"
  int64_t update = 0;    // updates done
  double done = 0;       // share, 0..1
  double images_per_second = 0, loss = 0;
};

struct SweepState {
  int64_t total = 0, done = 0, failed = 0;
  double seconds_left = 0;  // NaN: unknown
  std::vector<WorkerLine> workers;
};

/// Draws on stderr. Piped: a line whenever something is announced and an overall line every 30 s.
class SweepDisplay {
 public:
  explicit SweepDisplay(std::string what);
  ~SweepDisplay();
  /// A line that stays, above what is redrawn.
  void announce(const std::string& line);
  /// At most five times a second on a terminal.
  void update(const SweepState& state);
  void clear();

 private:
  std::string overall(const SweepState& state) const;
  std::string what_;
  bool terminal_;
  int64_t drawn_lines_ = 0;
  Clock::time_point start_, last_drawn_;
};

/// "training lamb B=2048 protocol B seed 1  update 34  43 %  8120 images/s  loss 1.62"
std::string to_text(const WorkerLine& line);

}  // namespace basin
