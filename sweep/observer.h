// defines: SweepObserver, what looks on while a sweep works; SweepState and WorkerLine, where it stands.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace basin {

/// What a worker is at; ending: all is done but the process.
enum class Activity { training, probing, ending };

struct WorkerLine {
  std::string label;
  Activity activity = Activity::training;
  int64_t update = 0;  // updates done
  double done = 0;     // share, 0..1
  double images_per_second = 0, loss = 0;
  std::string probing = {};  // "3/12: end top_eigenvalues, about 40 s left"
};

struct SweepState {
  int64_t total = 0, done = 0, failed = 0;
  double seconds_left = 0;  // NaN: unknown
  std::vector<WorkerLine> workers;
  std::vector<std::string> notes = {};  // lines below theirs
};

class SweepObserver {
 public:
  virtual ~SweepObserver() = default;
  /// From now on the cells of `what`: "sweep", "tuning".
  virtual void begin(const std::string& what) = 0;
  /// A line that stays.
  virtual void announce(const std::string& line) = 0;
  /// Called several times a second.
  virtual void update(const SweepState& state) = 0;
  /// No more updates until begin().
  virtual void end() = 0;
};

}  // namespace basin
