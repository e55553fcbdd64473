#include "trainers/workers/recorded_order.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/hash.h"
#include "io/run_file.h"

namespace basin {
namespace {

constexpr const char* kPlace = "recorded_order";

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw ConfigError(fmt::format("parallel.order: {} {}", path, what));
}

std::vector<int64_t> whole(const Table& table, const std::string& name) {
  std::vector<int64_t> numbers;
  for (const double value : table.column(name)) numbers.push_back(std::llround(value));
  return numbers;
}

const Column* column_of(const Table& table, const std::string& name) {
  const auto found = std::find_if(table.columns.begin(), table.columns.end(),
                                  [&](const Column& column) { return column.name == name; });
  return found == table.columns.end() ? nullptr : &*found;
}

std::string sha256_of(const ArrivalList& list) {
  Sha256 hash;
  hash.update(list.time_units + "\n");
  for (const Arrival& a : list.arrivals)
    hash.update(fmt::format("{} {} {} {} {:a}\n", a.worker, a.batch, a.staleness, a.lead, a.time));
  return hash.hex_digest();
}

}  // namespace

ArrivalList read_arrivals(const std::string& path) {
  ArrivalList list;
  list.path = run_file_at(path);
  const RunRecord record = read_run_file(list.path);
  list.run_id = record.header.run_id;
  list.config_id = record.header.config_id;
  const auto train = record.tables.find("train");
  const Column* const time =
      train == record.tables.end() ? nullptr : column_of(train->second, "arrival_time");
  if (!time) refuse(list.path, "is of a run without workers: it has no order of arrivals");
  list.time_units = time->units;
  const Table& table = train->second;
  const std::vector<int64_t> worker = whole(table, "worker"), batch = whole(table, "worker_batch"),
                             staleness = whole(table, "staleness"), lead = whole(table, "worker_lead");
  const std::vector<double> times = table.column("arrival_time"), updates = table.column("update");
  if (!updates.empty() && updates.front() != 1)
    refuse(list.path, fmt::format("is of a branch, which began after update {}", updates.front() - 1));
  for (size_t i = 0; i < worker.size(); ++i) {
    if (worker[i] < 0 || batch[i] < 0 || staleness[i] < 0 || staleness[i] > static_cast<int64_t>(i))
      refuse(list.path, fmt::format("has an update {} of weights that were not yet", i + 1));
    list.arrivals.push_back({worker[i], batch[i], staleness[i], lead[i], times[i]});
  }
  list.sha256 = sha256_of(list);
  return list;
}

RecordedOrder::RecordedOrder(const ArrivalList& list, int64_t updates, int64_t workers)
    : path_(list.path), time_units_(list.time_units) {
  const auto arrivals = static_cast<int64_t>(list.arrivals.size());
  if (arrivals < updates)
    refuse(path_, fmt::format("has {} arrivals, the run has {} updates", arrivals, updates));
  for (int64_t t = 0; t < updates; ++t) {
    const Arrival& arrival = list.arrivals[static_cast<size_t>(t)];
    if (arrival.worker >= workers)
      refuse(path_, fmt::format("has a worker {}, and parallel.workers = {}", arrival.worker, workers));
    const int64_t version = t - arrival.staleness;
    steps_.push_back({arrival.worker, 0, version, arrival.batch, arrival.time});
    leads_.push_back(arrival.lead);
    ++to_come_[version];
  }
}

void RecordedOrder::advance(int64_t /*version*/) {
  const auto from = to_come_.find(next().version);
  if (--from->second == 0) to_come_.erase(from);
  ++done_;
}

std::set<int64_t> RecordedOrder::versions() const {
  std::set<int64_t> all;
  for (const auto& [version, steps] : to_come_)
    if (version <= done_) all.insert(version);
  return all;
}

int64_t RecordedOrder::steps_from(int64_t version) const {
  const auto found = to_come_.find(version);
  return found == to_come_.end() ? 0 : found->second;
}

// All that is to be made again, and how much of it has been.
NamedTensors RecordedOrder::state() const {
  std::vector<int64_t> numbers{done_};
  for (const StaleStep& step : steps_) numbers.insert(numbers.end(), {step.worker, step.version, step.batch});
  return {{kPlace, at::tensor(numbers, at::kLong)}};
}

void RecordedOrder::load_state(const NamedTensors& state) {
  const at::Tensor here = RecordedOrder::state().front().second;
  const bool fits = state.size() == 1 && state.front().first == kPlace &&
                    state.front().second.sizes() == here.sizes() &&
                    state.front().second.slice(0, 1).equal(here.slice(0, 1));
  if (!fits) throw IoError(fmt::format("{} has another order of arrivals than the checkpoint", path_));
  const int64_t done = state.front().second.const_data_ptr<int64_t>()[0];
  while (done_ < std::min(done, static_cast<int64_t>(steps_.size()))) advance(done_ + 1);
}

}  // namespace basin
