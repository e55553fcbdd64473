#include "apps/output/status_text.h"

#include "apps/output/json_output.h"
#include "apps/output/sweep_display.h"
#include "core/messages.h"
#include "core/progress.h"

namespace basin {
namespace {

std::string last_word(const RunAtWork& run) {
  const std::string place = run.host.empty() ? "" : fmt::format("pid {} on host {}", run.pid, run.host);
  return std::isfinite(run.silent_seconds)
             ? fmt::format("{}, last word {} ago", place, format_duration(run.silent_seconds))
             : place;
}

// Neither done, nor failed, nor at work.
size_t waiting(const SweepLook& look) {
  return look.plan.cells.size() - look.plan.count(Standing::done) - look.failures.size() -
         look.at_work.size() - look.lost;
}

}  // namespace

std::string format_bytes(double bytes) {
  return bytes >= 1e9 ? fmt::format("{:.1f} GB", bytes / 1e9)
                      : fmt::format("{:.{}f} MB", bytes / 1e6, bytes >= 1e7 ? 0 : 1);
}

void print(const std::string& out, const SweepLook& look) {
  fmt::print("{}: {}, {} done, {} at work, {} failed, {} waiting\n", out,
             counted(look.plan.cells.size(), "run"), look.plan.count(Standing::done), look.at_work.size(),
             look.failures.size(), waiting(look));
  for (const RunAtWork& run : look.at_work)
    fmt::print("  {} {}  ({})\n", run.run_id, to_text(run.line), last_word(run));
  for (const std::string& failure : look.failures) fmt::print("  failed: {}\n", failure);
  if (look.lost > 0) fmt::print("{} can't be made: what they need has failed\n", counted(look.lost, "run"));
  if (look.killed > 0)
    fmt::print("{} of those waiting: killed, and resumed by the next sweep\n", counted(look.killed, "run"));
  if (look.unprobed > 0) fmt::print("{} of those waiting: trained, and without probes\n", look.unprobed);
  if (!look.plan.winners_known)
    fmt::print(
        "the tuning has not ended; the runs after it are counted with stand-ins for what it will choose\n");
}

void print_json(const std::string& out, const SweepLook& look) {
  Json at_work = Json::array();
  for (const RunAtWork& run : look.at_work) {
    at_work.push_back({{"run_id", run.run_id},
                       {"label", run.line.label},
                       {"activity", to_string(run.line.activity)},
                       {"update", run.line.update},
                       {"done", run.line.done},
                       {"images_per_second", run.line.images_per_second},
                       {"loss", run.line.loss},
                       {"host", run.host},
                       {"pid", run.pid},
                       {"silent_seconds", run.silent_seconds}});
  }
  print_json("status", {{"out", out},
                        {"total", look.plan.cells.size()},
                        {"done", look.plan.count(Standing::done)},
                        {"waiting", waiting(look)},
                        {"unprobed", look.unprobed},
                        {"killed", look.killed},
                        {"lost", look.lost},
                        {"winners_known", look.plan.winners_known},
                        {"at_work", std::move(at_work)},
                        {"failed", look.failures}});
}

}  // namespace basin
