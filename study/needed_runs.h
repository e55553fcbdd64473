// defines: RunLink and resolve_needed_runs(), which runs of a study need another one of it to have ended.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "study/study.h"

namespace basin {

/// An option by which a run names another run. Its text is one of
///   conditions   `batch_size = 32, optimizer = "sgd"`, a text with "=": the one cell with the same seed for which they hold, and
///                which has the run's own values of the study's other axes. Becomes the named run's run_id.
///   a run_id     of 12 hex digits, as config.toml has it: stays.
///   another text, which the link settles by itself.
class RunLink {
 public:
  virtual ~RunLink() = default;
  /// The option's key in this cell, and its text; empty where the cell has no such link.
  virtual std::string key(const RunOptions& options) const = 0;
  virtual std::string text(const RunOptions& options) const = 0;
  /// Whether this option, an axis perhaps, belongs to the link: its values need not agree with the named run's. That run has itself
  /// no such link unless a condition is on one of these.
  virtual bool owns(const std::string& key) const = 0;
  /// "which {verb} ..."
  virtual std::string verb() const = 0;
  /// What to do where such a run was to be tuned, apart from giving it a rate: "or ..."; empty where there is nothing else.
  virtual std::string instead() const { return ""; }
  /// ConfigError in one line where the named run, which has its own name by now, doesn't fit; else its names into the cell's options.
  virtual void take(Cell& cell, const Cell& named) const = 0;
  /// For a text that is neither conditions nor a run_id.
  virtual void settle(Cell& /*cell*/) const {}
  /// Last: options that follow from others once the named run was found by them.
  virtual void adjust(Cell& /*cell*/) const {}
};

/// Whether a text is conditions.
bool has_conditions(const std::string& text);

/// Puts the named run's run_id in the place of every link's conditions, that run's own links first, and gives each cell that has a
/// link its new run_id and Cell::parents. Cells that come to the same run are left once. ConfigError in one line for conditions that
/// name no cell or several, for a run that needs itself or others in a circle, through links of any kind, and for two runs of one seed
/// that differ in nothing but which run of one setting they name: tables would count that seed twice.
void resolve_needed_runs(std::vector<Cell>& cells, const Study& study,
                         const std::vector<std::unique_ptr<RunLink>>& links);

}  // namespace basin
