// defines: Checkpoint, everything that a run needs to resume and a probe needs to measure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/options.h"
#include "core/parameter.h"

namespace basin {

/// HDF5: parameters as named datasets under /model with attributes layer and kind, so that h5py plus any framework can
/// rebuild the network; running statistics under /buffers; /optimizer, attributes for the counters; and a group for the state of
/// each hook of the trainer that has one, /average, /slow_weights, ...
/// Parameters keep the type they were trained in (float32 by default); they are stored
/// contiguously, whatever their memory format was.
struct Checkpoint {
  std::string run_id, config_id, config;        // config: the resolved TOML
  std::string label;                            // "latest", "start", "u000100", "loss-1.5", "end", "average"
  int64_t update = 0;                           // updates done
  std::map<std::string, OptionValue> progress;  // the trainer's own counters and flags
  std::vector<ParameterInfo> parameters;        // tensors detached, on CPU
  NamedTensors buffers, optimizer;
  NamedTensors
      generators;  // /generators: empty but in files of versions that drew dropout masks one after another
  std::map<std::string, NamedTensors> states;  // what hooks of the trainer keep, by their groups' names
  uint64_t journal_offset = 0;
  std::vector<std::pair<std::string, OptionValue>> data;  // as in RunHeader

  /// std::logic_error where there is one of that name.
  void add_state(const std::string& name, NamedTensors tensors);
  /// Empty where there is none of that name.
  const NamedTensors& state(const std::string& name) const;
};

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint);
/// IoError naming the file: missing, foreign, newer major version; DamagedError (io/damaged.h): truncated or corrupted
/// (fletcher32 and size are checked).
Checkpoint read_checkpoint(const std::string& path);
/// `update` alone, from the seal. The same errors but for those of what is behind the seal.
int64_t read_checkpoint_update(const std::string& path);

}  // namespace basin
