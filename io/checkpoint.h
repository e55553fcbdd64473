// defines: Checkpoint, everything a run needs to go on and a probe needs to look.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/options.h"
#include "core/parameter.h"

namespace basin {

/// HDF5: parameters as named datasets under /model with attributes layer and kind, so that h5py plus any framework can
/// rebuild the network; running statistics under /buffers; /optimizer, attributes for the counters;
/// /average where the run keeps an average of its weights, /slow_weights where it trains with Lookahead, /gradient_sum
/// where it logs GPT-NeoX's noise scale.
/// Parameters keep the type they were trained in (float32 by default); contiguous whatever their memory format was.
struct Checkpoint {
  std::string run_id, config_id, config;        // config: the resolved TOML
  std::string label;                            // "latest", "start", "u000100", "loss-1.5", "end", "average"
  int64_t update = 0;                           // updates done
  std::map<std::string, OptionValue> progress;  // the trainer's own counters and flags
  std::vector<ParameterInfo> parameters;        // tensors detached, on CPU
  NamedTensors buffers, optimizer;
  NamedTensors
      generators;  // /generators: empty but in files of versions that drew dropout masks one after another
  NamedTensors average;       // of the weights, by parameter; empty: none is kept
  NamedTensors slow_weights;  // Lookahead's, likewise
  NamedTensors gradient_sum;  // of the window that GPT-NeoX's noise scale is in, likewise
  uint64_t journal_offset = 0;
  std::vector<std::pair<std::string, OptionValue>> data;  // as in RunHeader
};

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint);
/// IoError naming the file: missing, foreign, newer major version; DamagedError (io/damaged.h): truncated or corrupted
/// (fletcher32 and size are checked).
Checkpoint read_checkpoint(const std::string& path);

}  // namespace basin
