#include "sweep/scaling/file.h"

#include <ATen/Parallel.h>

#include "core/error.h"
#include "core/provenance.h"
#include "io/schema.h"
#include "sweep/collect/columns.h"

namespace basin {
namespace {

Meaning meaning_of(const std::string& column) {
  static const Meanings table = {
      {"optimizer", {"", "option optimizer", "option"}},
      {"ranks", {"1", "processes that shared the work", "scaling-ranks"}},
      {"scaling", {"", "strong, weak or small: how the batch size goes with the ranks", "scaling-kind"}},
      {"batch_size", {"examples", "option batch_size: examples in a batch, all ranks together", "option"}},
      {"round", {"1", "round, from 1; each has every number of ranks once", "scaling-round"}},
      {"update_seconds", {"s", "mean wall time of an update", "scaling-update-seconds"}},
      {"images_per_second",
       {"examples/s", "batch size over the time of an update", "scaling-update-seconds"}},
      {"timed", {"1", "updates, products or sums that were timed", "scaling-round"}},
      {"rank_sums_per_update", {"1", "sums over ranks in an update", "rank-traffic"}},
      {"rank_bytes_per_update", {"B", "bytes that a rank had summed in an update", "rank-traffic"}},
      {"rank_wait_share",
       {"1", "share of the updates' time in which rank 0 waited for sums", "rank-traffic"}},
      {"wire_bytes_per_update",
       {"B", "bytes that the loopback interface sent in an update", "scaling-wire-bytes"}},
      {"examples", {"examples", "training examples of the Hessian", "scaling-products"}},
      {"product_seconds", {"s", "mean wall time of a Hessian-vector product", "scaling-products"}},
      {"bytes", {"B", "size of the tensor that is summed", "scaling-sums"}},
      {"sum_seconds", {"s", "median wall time of a sum over the ranks", "scaling-sums"}},
  };
  return table.at(column);
}

ColumnRow row_of(const TimedUpdates& u) {
  const auto updates = static_cast<double>(u.timing.updates);
  ColumnRow row = {{"optimizer", u.optimizer},
                   {"ranks", u.ranks},
                   {"scaling", u.scaling},
                   {"batch_size", u.batch},
                   {"round", u.round},
                   {"update_seconds", u.timing.seconds},
                   {"images_per_second", u.images_per_second()},
                   {"timed", u.timing.updates}};
  if (u.ranks == 1) return row;
  row.emplace_back("rank_sums_per_update", static_cast<double>(u.timing.traffic.sums) / updates);
  row.emplace_back("rank_bytes_per_update", static_cast<double>(u.timing.traffic.bytes) / updates);
  row.emplace_back("rank_wait_share", u.timing.traffic.waited / (u.timing.seconds * updates));
  if (u.on_one_host) row.emplace_back("wire_bytes_per_update", u.timing.wire / updates);
  return row;
}

ColumnRow row_of(const TimedProducts& p) {
  return {{"ranks", p.ranks},
          {"round", p.round},
          {"examples", p.examples},
          {"product_seconds", p.seconds},
          {"timed", p.timed}};
}

ColumnRow row_of(const TimedSums& s) {
  return {{"bytes", s.bytes},
          {"ranks", s.ranks},
          {"round", s.round},
          {"sum_seconds", s.seconds},
          {"timed", s.timed}};
}

template <class Timed>
std::vector<ColumnRow> rows_of(const std::vector<Timed>& all) {
  std::vector<ColumnRow> rows;
  for (const Timed& one : all) rows.push_back(row_of(one));
  return rows;
}

}  // namespace

void write_scaling_file(const std::string& path, const Study& study, const std::vector<Cell>& cells,
                        const RankScaling& found) {
  h5::File file = create_schema_file(path, kScalingSchema);
  file.set_attribute("default", std::string("updates"));
  file.set_attribute("study", study.text);
  std::vector<std::string> labels;
  for (const Cell& cell : cells) labels.push_back(cell.label);
  file.set_attribute("cells", labels);
  file.set_attribute("hosts", found.hosts);
  file.set_attribute("threads", int64_t{at::get_num_threads()});
  file.create_group("provenance").set_attributes(text_attributes(collect_provenance()));
  write_table(file, "updates", "one row per optimiser, batch size, number of ranks and round", "optimizer",
              rows_of(found.updates), meaning_of);
  write_table(file, "products", "one row per number of ranks and round", "ranks", rows_of(found.products),
              meaning_of);
  write_table(file, "sums", "one row per size of a sum, number of ranks and round", "bytes",
              rows_of(found.sums), meaning_of);
  file.save();
}

}  // namespace basin
