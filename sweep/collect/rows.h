// defines: SweepRow, what is known of one run of a sweep; read_sweep_rows().
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/options.h"
#include "io/probe_file.h"
#include "io/record.h"
#include "io/run_state.h"

namespace basin {

/// What stands before the name of an option that a result is also called by: `epochs` of a finished run are those done,
/// `option.epochs` those asked for.
inline const std::string kAskedFor = "option.";

/// A run of a sweep as one row of columns, with what the row was made from. A run that has not begun has its
/// options alone; one whose files cannot be read has status "failed" and the reason as its message.
struct SweepRow {
  std::string run_id;
  /// run_id, config_id, status, status_message, every option, "dataset.*", every summary number, every probe
  /// quantity.
  std::vector<std::pair<std::string, OptionValue>> columns;
  // Thinned to at most kTrainRows, kEvalRows, kLayersRows and, of ledger, kTrainRows.
  Table train, eval, layers, ledger;
  std::vector<ParameterRow> parameters;
  std::map<std::string, ExampleOutcomes> outcomes;  // "test", and at loss levels "test@loss-1.5"
  std::vector<ProbeRecord> probes;                  // by the study's settings: these have columns
  std::vector<ProbeRecord> extra_probes;            // measured by hand with others

  const OptionValue* find(const std::string& column) const;  // nullptr where there is none
  double number(const std::string& column) const;            // NaN where absent or text
  std::string text(const std::string& column) const;         // "" where absent or a number
  RunState state() const;                                    // of the column "status"
};

/// A sweep's file keeps at most this many rows of a run's table, evenly spread, the first and last among them; run.h5
/// has them all. Updates to a loss are read off the evaluations: of them the first at or below each loss level and the
/// target is kept besides, with the one before it. The others are for figures.
inline constexpr int64_t kTrainRows = 500, kEvalRows = 2000, kLayersRows = 50;

/// The runs of SWEEP_FOLDER/runs that are cells of SWEEP_FOLDER/study.toml (a warning names the others), or all of them
/// where there is no study; ordered by protocol, optimiser, batch size, learning rate and seed. IoError where there is none.
/// A run has its setting's options and config_id whatever of its files is there; one with a file that can't be read
/// (damaged, of a newer schema) is a row with status failed.
std::vector<SweepRow> read_sweep_rows(const std::string& sweep_folder);

/// By protocol, optimiser, batch size, learning rate and seed.
void sort_rows(std::vector<SweepRow>& rows);

/// Name of a probe quantity's column: probe.<checkpoint>.<probe>.<quantity>, for vectors <quantity>_<index +
/// 1>.
std::string probe_column(const ProbeRecord& probe, const Quantity& quantity, size_t index);

/// A number of a probe's attributes (update, train_loss, ...) or NaN.
double probe_attribute(const ProbeRecord& probe, const std::string& name);
/// A text of them, or "".
std::string probe_attribute_text(const ProbeRecord& probe, const std::string& name);

}  // namespace basin
