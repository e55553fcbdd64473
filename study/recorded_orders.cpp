#include "study/recorded_orders.h"

#include "core/error.h"
#include "io/run_file.h"
#include "study/read_once.h"
#include "trainers/workers/stale_options.h"

namespace basin {
namespace {

/// The order of a run outside of the study.
struct OrderFile {
  std::string name, config_id;
};

const OrderFile& order_file(const std::string& path) {
  static ReadOnce<OrderFile> files;
  return files(path, "parallel.order names no run of a study and no run.h5", [](const std::string& file) {
    const ArrivalList list = read_arrivals(file);
    return OrderFile{name_of_order(list), list.config_id};
  });
}

StaleGradientOptions& parallel_of(Cell& cell) { return cell.options.train.hook<StaleGradientOptions>(); }
const StaleGradientOptions& parallel_of(const Cell& cell) {
  return cell.options.train.hook<StaleGradientOptions>();
}

class OrderLink final : public RunLink {
 public:
  std::string key(const RunOptions& /*options*/) const override { return "parallel.order"; }
  std::string text(const RunOptions& options) const override {
    const auto& parallel = options.train.hook<StaleGradientOptions>();
    return parallel.recorded() ? parallel.order : "";
  }
  bool owns(const std::string& key) const override {
    return key == "parallel.delays" || key.rfind("parallel.order", 0) == 0;
  }
  std::string verb() const override { return "makes the order again of"; }
  void take(Cell& cell, const Cell& named) const override {
    StaleGradientOptions& ours = parallel_of(cell);
    const StaleGradientOptions& theirs = parallel_of(named);
    if (!theirs.on())
      throw ConfigError(
          fmt::format("{}: parallel.order names {}, which has no workers: it has no order of arrivals",
                      cell.label, named.label));
    if (named.options.train.branch.exists())
      throw ConfigError(fmt::format(
          "{}: parallel.order names {}, which is a branch: it has the order of its own updates alone",
          cell.label, named.label));
    if (theirs.workers > ours.workers)
      throw ConfigError(fmt::format("{}: parallel.order names {}, which has more workers: {} there, {} here",
                                    cell.label, named.label, theirs.workers, ours.workers));
    ours.order_setting = named.options.config_id();
    ours.order = named.run_id;
    ours.order_path.clear();
  }
  void settle(Cell& cell) const override {
    StaleGradientOptions& parallel = parallel_of(cell);
    if (parallel.order.rfind("sha256:", 0) == 0) return;
    const std::string path = run_file_at(parallel.order);
    const OrderFile& file = order_file(path);
    parallel.order = file.name;
    parallel.order_path = path;
    parallel.order_setting = file.config_id;
  }
};

}  // namespace

std::unique_ptr<RunLink> order_link() { return std::make_unique<OrderLink>(); }

std::string name_of_order(const ArrivalList& list) { return "sha256:" + list.sha256; }

}  // namespace basin
