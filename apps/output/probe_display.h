// defines: ProbeDisplay, which probe is at work: a line redrawn in place on a terminal, a line each when piped.
#pragma once

#include "runs/probe_progress.h"

namespace basin {

/// Draws on stderr; the line goes with the object.
class ProbeDisplay {
 public:
  ProbeDisplay();
  ~ProbeDisplay();
  ProbeDisplay(const ProbeDisplay&) = delete;
  ProbeDisplay& operator=(const ProbeDisplay&) = delete;
  void show(const ProbeStep& step);

 private:
  bool terminal_, drawn_ = false;
};

}  // namespace basin
