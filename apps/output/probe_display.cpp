#include "apps/output/probe_display.h"

#include <cstdio>

#include "core/progress.h"

namespace basin {

ProbeDisplay::ProbeDisplay() : terminal_(stderr_is_terminal()) {}

ProbeDisplay::~ProbeDisplay() {
  if (!drawn_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

void ProbeDisplay::show(const ProbeStep& step) {
  drawn_ = terminal_;
  std::fprintf(stderr, terminal_ ? "\r\033[Kprobing %s" : "probing %s\n", to_text(step).c_str());
  std::fflush(stderr);
}

}  // namespace basin
