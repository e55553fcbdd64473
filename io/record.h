// defines: RunHeader, Table, RunRecord: what a run writes, in memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/options.h"
#include "io/run_state.h"

namespace basin {

/// One column of a table. Labels make it a [row, width] dataset (norms by parameter), whatever the width.
struct Column {
  std::string name, units, long_name, definition;
  int64_t width = 1;
  std::vector<std::string> labels;  // of the width entries; stored as a second dimension scale
};

/// A growing table of float64 rows; its first column is the dimension scale. A row holds every column's entries in order.
struct Table {
  std::string name;  // "train", "eval", "layers": the group in run.h5
  std::string long_name;
  std::vector<Column> columns;
  std::vector<double> rows;                                          // row-major
  std::vector<std::pair<std::string, OptionValue>> attributes = {};  // of the group, not of its tables
  int64_t row_width() const;
  int64_t row_count() const;
  /// Entries of one width-1 column.
  std::vector<double> column(const std::string& wanted) const;
};

struct ParameterRow {
  std::string name, layer, kind;
  std::vector<int64_t> shape;
  int64_t offset = 0, numel = 0;
};

/// Known before the first update. `config` is the resolved TOML, stored verbatim; `options` the same as typed flat attributes.
struct RunHeader {
  std::string run_id, config_id, config, created_utc;
  std::vector<std::pair<std::string, OptionValue>> options;
  std::vector<std::pair<std::string, std::string>> provenance;
  std::vector<std::pair<std::string, OptionValue>> rng;  // seed_init, seed_data_order, ...
  std::vector<std::pair<std::string, OptionValue>>
      data;  // name, pixels, sha256, n_train, n_validation, n_test, split_hash, ...
  std::vector<ParameterRow> parameters;
};

/// Per-example outcome of an evaluation of one split.
struct ExampleOutcomes {
  std::vector<uint8_t> correct;  // 0 or 1; it, margin and predicted are empty where a label isn't one class
  std::vector<float> loss, margin;      // margin = logit of the label - largest other logit
  std::vector<uint8_t> predicted = {};  // class of the largest logit; empty in files from before 1.3, and for
                                        // more classes than kMostClassesPredicted
};
/// 255 is no class: in files of sweeps it says that a run has no such outcome.
inline constexpr int64_t kMostClassesPredicted = 255;

struct RunRecord {
  RunHeader header;
  RunState status = RunState::running;
  std::string status_message, updated_utc;
  std::map<std::string, Table> tables;
  std::map<std::string, ExampleOutcomes> outcomes;  // by split: "test", "validation", and "test@loss-1.5"
  /// Final numbers: updates, epochs, gradients, train_loss, train_acc, test_loss, test_acc, steps_to_target, overshot, seconds ...
  std::vector<std::pair<std::string, OptionValue>> summary;
  struct Event {
    double seconds;
    std::string time, level, text;
  };
  std::vector<Event> events;
};

/// Rows of its table "train".
int64_t updates_in(const RunRecord& record);

}  // namespace basin
