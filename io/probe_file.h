// defines: ProbeRecord, the HDF5 file of one probe on one checkpoint (io knows no probes).
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "core/options.h"
#include "io/quantity.h"

namespace basin {

struct ProbeRecord {
  std::string run_id, config_id, probe, checkpoint, message;  // checkpoint: its label
  ProbeStatus status = ProbeStatus::ok;
  std::vector<std::pair<std::string, OptionValue>>
      attributes;  // settings, costs, checkpoint's update, train_loss, ...
  std::vector<std::pair<std::string, std::string>> provenance;
  std::vector<Quantity> quantities;
};

void write_probe_file(const std::string& path, const ProbeRecord& record);
ProbeRecord read_probe_file(const std::string& path);

}  // namespace basin
