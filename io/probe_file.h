// defines: the HDF5 file of one probe run, from plain columns (io knows no probes).
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "core/options.h"

namespace basin {

/// Mirrors probes/probe.h's Quantity.
struct ProbeQuantity {
  std::string name, definition, units, long_name, uncertainty_kind, status;
  std::vector<double> value, uncertainty, ci_low, ci_high;
  std::vector<std::string> entry_status = {};  // of each entry; `status` is the gravest of them
  bool is_vector = false;                      // then also with one entry: <name>_1
};

/// What tables call entry `index` (from 0) of a quantity: <name>_1, ... of a vector, else the name.
std::string entry_name(const std::string& quantity, bool is_vector, size_t index);

struct ProbeRecord {
  std::string run_id, config_id, probe, checkpoint, status, message;  // checkpoint: its label
  std::vector<std::pair<std::string, OptionValue>>
      attributes;  // settings, costs, checkpoint's update, train_loss, ...
  std::vector<std::pair<std::string, std::string>> provenance;
  std::vector<ProbeQuantity> quantities;
  /// Where a later checkpoint's search starts (/next_start); undefined where there is none. Not read back with the rest.
  at::Tensor next_start = {};
};

void write_probe_file(const std::string& path, const ProbeRecord& record);
ProbeRecord read_probe_file(const std::string& path);
/// /next_start alone; undefined where the file has none.
at::Tensor read_next_start(const std::string& path);

}  // namespace basin
