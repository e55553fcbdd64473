#include "study/branches.h"

#include <filesystem>
#include <utility>

#include "core/error.h"
#include "core/hash.h"
#include "io/checkpoint.h"
#include "study/checkpoint_names.h"
#include "study/read_once.h"
#include "study/tuning_reader.h"
#include "trainers/check_rule.h"

namespace basin {
namespace {

namespace fs = std::filesystem;

/// A checkpoint outside of the study.
struct ParentFile {
  std::string sha256, label, config_id;
};

const ParentFile& parent_file(const std::string& path) {
  static ReadOnce<ParentFile> files;
  return files(path, "branch.from names no run of a study and no checkpoint", [](const std::string& file) {
    const Checkpoint checkpoint = read_checkpoint(file);
    return ParentFile{sha256_of_file(file), checkpoint.label, checkpoint.config_id};
  });
}

void resolve_path(BranchOptions& branch) {
  std::string path = branch.from;
  if (fs::is_directory(path)) {
    if (branch.at.empty())
      throw ConfigError(fmt::format(
          "branch.from = \"{}\" is a folder: branch.at has to name a checkpoint in it", branch.from));
    path += "/ckpt/" + branch.at + ".h5";
  }
  const ParentFile& file = parent_file(path);
  if (branch.at.empty()) branch.at = file.label;
  if (branch.at != file.label)
    throw ConfigError(
        fmt::format("branch.at = \"{}\", but {} is the checkpoint \"{}\"", branch.at, path, file.label));
  branch.path = path;
  branch.from = "sha256:" + file.sha256;
  branch.setting = file.config_id;
}

std::string kept_by(const TrainOptions& parent) {
  std::vector<std::string> labels = {"start", "end"};
  if (parent.checkpoint_every > 0) labels.push_back(fmt::format("every {}. update", parent.checkpoint_every));
  for (const double level : parent.loss_levels) labels.push_back(CheckRule::level_label(level));
  return fmt::format("{}", fmt::join(labels, ", "));
}

void require_fit(const Cell& child, const Cell& parent) {
  const RunOptions &ours = child.options, &theirs = parent.options;
  const BranchOptions& branch = ours.train.branch;
  const auto differ = [&](const std::string& what, const std::string& there, const std::string& here) {
    throw ConfigError(fmt::format("{}: its parent {} has another {}: {} there, {} here", child.label,
                                  parent.label, what, there, here));
  };
  if (branch.at.empty())
    throw ConfigError(child.label + ": branch.from needs branch.at, the parent's checkpoint");
  if (!can_keep(theirs.train, branch.at))
    throw ConfigError(fmt::format("{}: its parent {} keeps no checkpoint branch.at = \"{}\"; it keeps: {}",
                                  child.label, parent.label, branch.at, kept_by(theirs.train)));
  if (theirs.model != ours.model) differ("network", theirs.model, ours.model);
  if (theirs.data.set != ours.data.set) differ("data set", theirs.data.set, ours.data.set);
  if (theirs.train.dtype != ours.train.dtype) differ("dtype", theirs.train.dtype, ours.train.dtype);
  if (branch.optimizer != "reset" && theirs.optimizer != ours.optimizer)
    throw ConfigError(
        fmt::format("{}: its parent {} has another optimiser: branch.optimizer = \"{}\" must be \"reset\"",
                    child.label, parent.label, branch.optimizer));
}

class BranchLink final : public RunLink {
 public:
  std::string key(const RunOptions& /*options*/) const override { return "branch.from"; }
  std::string text(const RunOptions& options) const override { return options.train.branch.from; }
  bool owns(const std::string& key) const override { return !key_below(key, "branch").empty(); }
  std::string verb() const override { return "branches from"; }
  std::string instead() const override { return "or take the rates from a selection (sweep.selection)"; }
  void take(Cell& cell, const Cell& parent) const override {
    require_fit(cell, parent);
    BranchOptions& branch = cell.options.train.branch;
    branch.setting = parent.options.config_id();
    branch.from = parent.run_id;
  }
  void settle(Cell& cell) const override {
    BranchOptions& branch = cell.options.train.branch;
    if (branch.from.rfind("sha256:", 0) != 0) resolve_path(branch);
  }
  // Resolved options say what the run does: a branch by a factor is the same run as one by its rate.
  void adjust(Cell& cell) const override {
    cell.options.train.learning_rate *= std::exchange(cell.options.train.branch.rate_factor, 1.0);
  }
};

// A run without a parent, whatever is swept of [branch] besides.
void forget_other_keys(std::vector<Cell>& cells) {
  for (Cell& cell : cells) {
    BranchOptions& branch = cell.options.train.branch;
    if (branch.exists() || branch == BranchOptions{}) continue;
    branch = {};
    cell.run_id = cell.options.run_id();
  }
  cells = distinct_runs(cells);
}

}  // namespace

void check_branches(std::vector<Cell>& cells, const Study& study) {
  const auto is_branch = [](const Cell& cell) { return cell.options.train.branch.exists(); };
  const auto has_keys = [](const Cell& cell) { return !(cell.options.train.branch == BranchOptions{}); };
  const bool any_keys = !(study.base.train.branch == BranchOptions{}) ||
                        std::any_of(cells.begin(), cells.end(), has_keys);  // by --set, say
  if (any_keys && std::none_of(cells.begin(), cells.end(), is_branch))
    throw ConfigError("[branch] needs branch.from, the parent: without it no run of the study is a branch");
  forget_other_keys(cells);
}

std::unique_ptr<RunLink> branch_link() { return std::make_unique<BranchLink>(); }

}  // namespace basin
