// defines: SweepDisplay, the progress of a sweep: redrawn in place on a terminal, plain lines when piped; to_text(), to_string().
#pragma once

#include <cstdint>
#include <string>

#include "core/clock.h"
#include "sweep/observer.h"

namespace basin {

/// Draws on stderr. Piped: a line whenever something is announced and an overall line every 30 s.
class SweepDisplay : public SweepObserver {
 public:
  SweepDisplay();
  ~SweepDisplay() override;
  void begin(const std::string& what) override;
  /// Above what is redrawn.
  void announce(const std::string& line) override;
  /// On a terminal at once (a sweep of short runs would show nothing), then at most five times a second.
  void update(const SweepState& state) override;
  void end() override { clear(); }

 private:
  void clear();
  std::string overall(const SweepState& state) const;
  std::string what_;
  bool terminal_;
  bool shown_ = false;
  int64_t drawn_lines_ = 0;
  Clock::time_point start_, last_drawn_;
};

const char* to_string(Activity activity);

/// "training lamb B=2048 protocol B seed 1  update 34  43 %  8120 images/s  loss 1.62",
/// "probing lamb B=2048 protocol B seed 1  3/12: end top_eigenvalues, about 40 s left"
std::string to_text(const WorkerLine& line);

}  // namespace basin
