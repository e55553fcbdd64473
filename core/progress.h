// defines: Progress, a line on stderr with done/total, rate and time left.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace basin {

/// On a terminal the line is redrawn in place, at most ten times a second; piped, a plain line appears every
/// `plain_interval` seconds and at the end. Silent when made with enabled = false.
class Progress {
 public:
  Progress(std::string what, double total, std::string unit, bool enabled = true,
           double plain_interval = 10.0);
  ~Progress();
  /// What an earlier process did: no part of the rate.
  void resume_at(double done) { begun_ = done_ = done; }
  /// `done` in units of total; `note` is shown behind (e.g. "loss 1.42").
  void update(double done, const std::string& note = "");
  /// The last line; `done` is how far it came.
  void finish(double done, const std::string& note = "");

 private:
  void draw(const std::string& note, bool last);
  std::string what_, unit_;
  double total_, begun_ = 0, done_ = 0, plain_interval_;
  bool enabled_, terminal_, finished_ = false;
  std::chrono::steady_clock::time_point start_, last_drawn_;
};

/// One that lines can be redrawn on: TERM is set and isn't "dumb".
bool stderr_is_terminal();
/// "45 s", "3 min 10 s", "2 h 5 min".
std::string format_duration(double seconds);

}  // namespace basin
