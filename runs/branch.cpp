#include "runs/branch.h"

#include <filesystem>

#include "core/error.h"
#include "core/hash.h"
#include "io/damaged.h"
#include "runs/checkpoints.h"
#include "runs/folder.h"
#include "runs/parts.h"
#include "trainers/batch_plan.h"

namespace basin {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFileHash = "sha256:";

// Where this branch began, by its own checkpoints; nothing where it has to begin anew.
std::optional<BranchPoint> point_of_own(const std::string& folder) {
  if (!fs::exists(checkpoint_path(folder, "latest")) && !fs::exists(checkpoint_path(folder, "previous")))
    return std::nullopt;
  for (const char* label : {"latest", "previous", "start"}) {
    const std::string path = checkpoint_path(folder, label);
    if (!fs::exists(path)) continue;
    try {
      return branch_point_of(read_checkpoint(path));
    } catch (const DamagedError&) {
      continue;  // the recorder says so
    }
  }
  return std::nullopt;
}

std::string parent_file(const BranchOptions& branch, const std::string& folder) {
  if (!branch.path.empty()) return branch.path;
  if (branch.from.rfind(kFileHash, 0) == 0)
    throw ConfigError(
        fmt::format("branch.from = \"{}\" needs branch.path, where the file lies", branch.from));
  const std::string parent = run_next_to(folder, branch.from);
  if (!fs::is_directory(parent)) throw untrained(parent, "branch.from");
  return checkpoint_path(parent, branch.at);
}

// What of a run's folder lies there, for the message.
std::string labels_next_to(const fs::path& file) {
  try {
    return fmt::format("{}", fmt::join(checkpoint_labels(file.parent_path().parent_path().string()), ", "));
  } catch (const IoError&) {
    return "none";
  }
}

Checkpoint read_parent(const BranchOptions& branch, const std::string& file, const std::string& sha256) {
  Checkpoint parent = read_checkpoint(file);
  if (branch.path.empty()) {
    require_run(file, parent.run_id, branch.from, "branch.from");
  } else if (branch.from != kFileHash + sha256) {
    throw IoError(fmt::format("{}: is not the file that branch.from names: its SHA-256 is {}, not {}", file,
                              sha256, branch.from.substr(std::string(kFileHash).size())));
  }
  if (parent.label != branch.at)
    throw IoError(
        fmt::format("{}: is the checkpoint \"{}\", not branch.at = \"{}\"", file, parent.label, branch.at));
  return parent;
}

void require_same_network(const std::string& file, const Checkpoint& parent, const RunOptions& parents,
                          const RunOptions& options, const Model& model) {
  if (parents.model != options.model)
    throw IoError(
        fmt::format("{}: of another network: {} there, {} here", file, parents.model, options.model));
  if (parents.train.dtype != options.train.dtype)
    throw IoError(fmt::format("{}: of another type: {} there, {} here", file, parents.train.dtype,
                              options.train.dtype));
  const std::vector<ParameterInfo>& own = model.parameter_table();
  const auto named = [](const ParameterInfo& p) {
    return fmt::format("{} [{}]", p.name, fmt::join(p.tensor.sizes(), ", "));
  };
  for (size_t i = 0; i < std::max(own.size(), parent.parameters.size()); ++i) {
    const std::string here = i < own.size() ? named(own[i]) : "nothing";
    const std::string there = i < parent.parameters.size() ? named(parent.parameters[i]) : "nothing";
    if (here != there)
      throw IoError(fmt::format("{}: of another network: {} there, {} here", file, there, here));
  }
}

/// `who` needs it: "a method with ... needs".
void require_same_batch_size(const std::string& file, const RunOptions& parents, const RunOptions& options,
                             const std::string& who) {
  if (parents.train.batch_size == options.train.batch_size) return;
  throw ConfigError(fmt::format("batch_size = {}, and {} in the parent {}: {} the same in both",
                                options.train.batch_size, parents.train.batch_size, file, who));
}

void require_usable_state(const std::string& file, const Checkpoint& parent, const RunOptions& parents,
                          const RunOptions& options) {
  const auto ending = parent.progress.find("ending");
  if (ending != parent.progress.end() && ending->second == OptionValue(std::string("diverged")))
    throw IoError(file + ": its run diverged: there is nothing to branch from");
  const BranchOptions& branch = options.train.branch;
  if (branch.optimizer == "reset") return;
  if (parents.optimizer != options.optimizer)
    throw ConfigError(
        fmt::format("branch.optimizer = \"{}\": {} was trained by {}, this run by {}: \"reset\" begins "
                    "without its state",
                    branch.optimizer, file, parents.optimizer, options.optimizer));
  if (batch_plan_of(parents).shards)
    throw ConfigError(
        fmt::format("branch.optimizer = \"{}\": {} has a mean of chains' weights (parallel.shards), and no "
                    "optimiser state that belongs to it: \"reset\" begins without one",
                    branch.optimizer, file));
  if (parent.label == "average")
    throw ConfigError(
        "branch.at = \"average\" needs branch.optimizer = \"reset\": the state belongs to the run's own "
        "weights");
  if (optimizer_traits(options).overlap > 0)
    require_same_batch_size(file, parents, options, "a method with overlap of batches needs");
}

// The lowest of the parent's loss levels that it had passed there.
double passed_loss(const Checkpoint& parent, const RunOptions& parents) {
  std::vector<double> levels = parents.train.loss_levels;
  std::sort(levels.begin(), levels.end(), std::greater<>());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  const auto found = parent.progress.find("levels_passed");
  const int64_t passed = found == parent.progress.end() ? 0 : std::get<int64_t>(found->second);
  return passed < 1 || levels.empty()
             ? NAN
             : levels[std::min<size_t>(levels.size(), static_cast<size_t>(passed)) - 1];
}

int64_t counter(const Checkpoint& parent, const std::string& file, const char* name) {
  const auto found = parent.progress.find(name);
  if (found == parent.progress.end() || !std::holds_alternative<int64_t>(found->second))
    throw IoError(fmt::format("{}: its progress has no \"{}\"", file, name));
  return std::get<int64_t>(found->second);
}

BranchPoint point_at(const Checkpoint& parent, const std::string& file, const RunOptions& parents,
                     const RunOptions& options) {
  BranchPoint point;
  point.update = counter(parent, file, "update");
  point.examples = counter(parent, file, "examples");
  point.gradients = counter(parent, file, "gradients");
  point.same_start = parents.train.seed == options.train.seed;
  if (const std::optional<BranchPoint> before = branch_point_of(parent)) {
    point.stream_start = before->stream_start;
    point.draws_start = before->draws_start;
    point.same_start = point.same_start && before->same_start;
  }
  if (options.train.branch.stream == "restarted") {
    point.stream_start = point.examples;
    point.draws_start = point.update;
  }
  if (const auto rate = parent.progress.find("learning_rate"); rate != parent.progress.end())
    point.learning_rate = std::get<double>(rate->second);
  point.parent = parent.run_id;
  point.label = parent.label;
  return point;
}

BranchStart begin_anew(const RunOptions& options, const std::string& folder, const DataAttributes& data,
                       const Model& model) {
  const BranchOptions& branch = options.train.branch;
  const std::string file = parent_file(branch, folder);
  if (!fs::exists(file))
    throw IoError(fmt::format("{}: missing: the parent kept no checkpoint \"{}\" (it has: {})", file,
                              branch.at, labels_next_to(file)));
  const std::string sha256 = sha256_of_file(file);
  auto parent = std::make_shared<const Checkpoint>(read_parent(branch, file, sha256));
  const RunOptions parents = run_options_from(parse_toml(parent->config, "config of " + file), {});
  require_same_network(file, *parent, parents, options, model);
  check_same_data(file, parent->data, data);
  require_usable_state(file, *parent, parents, options);
  // Workers' place in the stream is a number of batches.
  if (batch_plan_of(parents).stale && batch_plan_of(options).stale)
    require_same_batch_size(file, parents, options, "workers (parallel.mode) need");

  BranchStart start;
  start.point = point_at(*parent, file, parents, options);
  start.point.sha256 = sha256;
  start.passed_loss = passed_loss(*parent, parents);
  start.same_target = parents.train.ends_by(Protocol::matched_loss) &&
                      options.train.ends_by(Protocol::matched_loss) &&
                      parents.train.target_loss == options.train.target_loss;
  start.rate_in_slot = optimizer_traits(options).rate_in_slot;
  start.parent = std::move(parent);
  return start;
}

}  // namespace

std::optional<BranchStart> branch_start(const RunOptions& options, const std::string& folder,
                                        const DataAttributes& data, const Model& model) {
  const BranchOptions& branch = options.train.branch;
  if (!branch.exists()) return std::nullopt;
  BranchStart start;
  if (const std::optional<BranchPoint> own = point_of_own(folder))
    start.point = *own;
  else
    start = begin_anew(options, folder, data, model);
  start.anneal_updates = anneal_length(branch.anneal, start.point.update, optimizer_traits(options).momentum);
  return start;
}

}  // namespace basin
