#include "runs/given_order.h"

#include <filesystem>

#include "core/error.h"
#include "runs/folder.h"
#include "study/recorded_orders.h"
#include "trainers/workers/stale_options.h"

namespace basin {
namespace {

namespace fs = std::filesystem;

std::string record_of(const StaleGradientOptions& parallel, const std::string& folder) {
  if (!is_run_id(parallel.order)) {
    if (!parallel.order_path.empty()) return parallel.order_path;
    throw ConfigError(fmt::format("parallel.order = \"{}\" needs parallel.order_path, where the run.h5 lies",
                                  parallel.order));
  }
  const std::string record = run_next_to(folder, parallel.order) + "/run.h5";
  if (!fs::exists(record)) throw untrained(record, "parallel.order");
  return record;
}

}  // namespace

std::shared_ptr<const ArrivalList> given_order(const RunOptions& options, const std::string& folder,
                                               const RankGroup& ranks) {
  const auto& parallel = options.train.hook<StaleGradientOptions>();
  if (!parallel.recorded()) return nullptr;
  auto list = std::make_shared<const ArrivalList>(read_arrivals(record_of(parallel, folder)));
  const std::string found = name_of_order(*list);
  if (is_run_id(parallel.order))
    require_run(list->path, list->run_id, parallel.order, "parallel.order");
  else if (parallel.order != found)
    throw IoError(fmt::format("{}: has not the order of arrivals that parallel.order names: {}, not {}",
                              list->path, found, parallel.order));
  ranks.agree("the order of arrivals", found);
  return list;
}

}  // namespace basin
