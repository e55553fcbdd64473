#include "sweep/scaling/file.h"

#include <ATen/Parallel.h>

#include "core/error.h"
#include "core/provenance.h"
#include "io/schema.h"

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

}  // namespace

void write_scaling_file(const std::string& path, const Study& study, const std::vector<Cell>& cells,
                        const std::vector<std::string>& hosts, const RankScaling& found) {
  h5::File file = create_schema_file(path, kScalingSchema);
  file.set_attribute("default", std::string("updates"));
  file.set_attribute("study", study.text);
  std::vector<std::string> labels;
  for (const Cell& cell : cells) labels.push_back(cell.label);
  file.set_attribute("cells", labels);
  file.set_attribute("hosts", hosts);
  file.set_attribute("threads", int64_t{at::get_num_threads()});
  file.create_group("provenance").set_attributes(text_attributes(collect_provenance()));
  write_table(file, "updates", "one row per optimiser, batch size, number of ranks and round", "optimizer",
              found.updates, meaning_of);
  write_table(file, "products", "one row per number of ranks and round", "ranks", found.products, meaning_of);
  write_table(file, "sums", "one row per size of a sum, number of ranks and round", "bytes", found.sums,
              meaning_of);
  file.save();
}

}  // namespace basin
