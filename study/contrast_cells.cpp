#include "study/contrast_cells.h"

#include "core/error.h"
#include "core/nearest.h"
#include "study/values.h"
#include "trainers/check_rule.h"

namespace basin {
namespace {

using OptionMap = std::map<std::string, OptionValue>;

/// A cell with the options that define its setting.
struct KnownCell {
  const Cell* cell;
  OptionMap options;           // without the seed
  std::set<std::string> open;  // those that tuning has still to choose
  std::string setting;         // equal for all runs of one setting
};

KnownCell known(const Cell& cell, bool tunes) {
  KnownCell found{&cell, {}, {}, ""};
  if (tunes)
    for (const auto& [key, value] : cell.candidate.settings()) found.open.insert(key);
  for (const Option& option : cell.options.defining_table()) {
    if (!option.traits.may_be_swept() || option.traits.is_repetition) continue;
    const OptionValue value = value_of_setting(cell.options, option);
    found.options.emplace(option.key, value);
    if (!found.open.count(option.key)) found.setting += option.key + " = " + to_toml(value) + "\n";
  }
  return found;
}

bool meets(const KnownCell& cell, const TomlEntry& condition) {
  const auto option = cell.options.find(condition.key);
  return option != cell.options.end() && option->second == condition.value;
}

/// Whether a run under `place` ("end", "loss-1.5") has a checkpoint of its own there, and which.
std::string checkpoint_at(const std::string& at, const TrainOptions& train) {
  if (at == "end" || at == "budget") return "end";
  for (const double level : train.loss_levels)
    if (CheckRule::level_label(level) == at) return at;
  if (train.ends_by(Protocol::matched_loss) && CheckRule::level_label(train.target_loss) == at) return "end";
  return "";
}

std::string places_of(const TrainOptions& train) {
  std::vector<std::string> places;
  for (const double level : train.loss_levels) places.push_back(CheckRule::level_label(level));
  if (train.ends_by(Protocol::matched_loss)) places.push_back(CheckRule::level_label(train.target_loss));
  return places.empty() ? "none" : fmt::format("{}", fmt::join(places, ", "));
}

/// Why a probe's number isn't measured at the checkpoint; empty where it is, and for other outcomes.
std::string unprobed(const Contrast& contrast, const std::string& checkpoint, const RunOptions& options) {
  const std::string probe = probe_outcome(contrast.outcome).probe;
  if (probe.empty()) return "";
  const bool twin = contrast_place(contrast.at).twin;
  const std::vector<std::string>&run = twin ? options.probes.twin : options.probes.run,
        &at = options.probes.at;
  if (!contains(run, probe))
    return fmt::format("does not measure {} (probes.{} = {})", probe, twin ? "twin" : "run", to_toml(run));
  if (contains(at, checkpoint) || contains(at, std::string("all"))) return "";
  if (checkpoint != "end" && contains(at, std::string("loss"))) return "";
  return fmt::format("does not measure {} at {} (probes.at = {})", probe, checkpoint, to_toml(at));
}

/// Why the outcome isn't measured there; empty where it is.
std::string unmeasured(const Contrast& contrast, const RunOptions& options) {
  const TrainOptions& train = options.train;
  const std::string place = contrast_place(contrast.at).label;
  if (place == "budget" && train.ends_by(Protocol::matched_loss))
    return fmt::format("has no fixed budget (protocol {})", train.protocol);
  if (place.starts_with(kAnnealed)) return "";  // what that needs are its branches
  const std::string checkpoint = checkpoint_at(place, train);
  if (checkpoint.empty()) return fmt::format("has no {} (levels: {})", place, places_of(train));
  return unprobed(contrast, checkpoint, options);
}

class ContrastResolver {
 public:
  ContrastResolver(const Study& study, const std::vector<Cell>& cells) : study_(study) {
    for (const Cell& cell : cells) cells_.push_back(known(cell, study.tuning.enabled));
  }

  ContrastCells resolve(const Contrast& contrast) {
    ContrastCells found;
    found.contrast = &contrast;
    switch (contrast.kind) {
      case Contrast::Kind::plain:
        add(contrast, "base", contrast.base, found);
        add(contrast, "arm", arm_conditions(contrast.base, contrast.arm), found);
        break;
      case Contrast::Kind::recovery: {
        const Contrast& gap = contrast_named(study_.contrasts, contrast.recovers);
        add(contrast, "small", gap.base, found);
        add(contrast, "large", arm_conditions(gap.base, gap.arm), found);
        add(contrast, "arm", arm_conditions(gap.base, contrast.arm), found);
        break;
      }
      case Contrast::Kind::difference:
        for (const std::string& part : {contrast.minuend, contrast.subtrahend}) {
          ContrastCells of_part = resolve(contrast_named(study_.contrasts, part));
          std::move(of_part.settings.begin(), of_part.settings.end(), std::back_inserter(found.settings));
        }
        break;
    }
    found.paired_seeds = common_seeds(found.settings);
    if (found.paired_seeds.empty())
      throw ConfigError(
          fmt::format("{}: the settings of \"{}\" share no seed", contrast.where, contrast.name));
    if (contrast.kind == Contrast::Kind::plain) found.also_differs = other_differences(contrast, found);
    return found;
  }

 private:
  void add(const Contrast& contrast, const std::string& role, const std::vector<TomlEntry>& conditions,
           ContrastCells& found) {
    const std::string what = fmt::format("{}: {} of \"{}\"", contrast.where, role, contrast.name);
    PickedSetting picked{role, {}};
    std::vector<const KnownCell*> members;
    for (const KnownCell& cell : cells_) {
      refuse_open(cell, conditions);
      if (!std::all_of(conditions.begin(), conditions.end(),
                       [&](const TomlEntry& condition) { return meets(cell, condition); }))
        continue;
      members.push_back(&cell);
    }
    if (found.settings.empty())
      keep_plain(conditions, members);
    else
      keep_like(known_of(*found.settings.front().cells.front()), conditions, members);
    if (members.empty()) throw ConfigError(fmt::format("{} picks no run: {}", what, missing(conditions)));
    for (const KnownCell* cell : members) {
      if (cell->setting != members.front()->setting) {
        throw ConfigError(fmt::format("{} picks several settings, which differ in {}", what,
                                      difference(*members.front(), *cell)));
      }
      std::string reason = unmeasured(contrast, cell->cell->options);
      if (reason.empty() && contrast.at.starts_with(kAnnealed)) reason = not_annealed(contrast, *cell->cell);
      if (!reason.empty())
        throw ConfigError(
            fmt::format("{}: {}: run {} {}", what, contrast.outcome, cell->cell->label, reason));
    }
    for (const KnownCell* cell : members) picked.cells.push_back(cell->cell);
    for (const PickedSetting& other : found.settings) {
      if (known_of(*other.cells.front()).setting == members.front()->setting)
        throw ConfigError(fmt::format("{} picks the same setting as its {}", what, other.role));
    }
    found.settings.push_back(std::move(picked));
  }

  // Why branches of the run can't be compared at one loss; empty where they can.
  std::string not_annealed(const Contrast& contrast, const Cell& parent) const {
    std::set<std::string> places;
    std::set<double> shares;
    std::string lacks;
    for (const KnownCell& known : cells_) {
      const auto& branch = known.cell->options.train.branch;
      if (branch.from != parent.run_id || branch.anneal == 0) continue;
      const std::string reason = unprobed(contrast, "end", known.cell->options);
      if (!reason.empty()) {
        lacks = fmt::format("; another one {}", reason);
        continue;
      }
      places.insert(branch.at);
      shares.insert(branch.anneal);
    }
    if (places.size() < 2)
      return fmt::format("has annealed branches from {} places, and two are needed{}", places.size(), lacks);
    return shares.size() > 1 ? "has branches annealed over several shares" : "";
  }

  const KnownCell& known_of(const Cell& cell) const {
    return *std::find_if(cells_.begin(), cells_.end(), [&](const KnownCell& k) { return k.cell == &cell; });
  }

  static bool is_one(const std::vector<const KnownCell*>& members) {
    return std::all_of(members.begin(), members.end(),
                       [&](const KnownCell* cell) { return cell->setting == members.front()->setting; });
  }

  // Several settings: those in which an option swept by arms alone, and not named, is as in all other settings.
  void keep_plain(const std::vector<TomlEntry>& conditions, std::vector<const KnownCell*>& members) const {
    for (const Axis& axis : study_.axes)
      if (axis.of_arms) keep(axis.key, axis.values.front(), conditions, members);
  }

  // Several settings: those that agree with the base in the axes which the conditions don't name, and are as in all other settings in
  // what arms alone sweep where the base has no such option.
  void keep_like(const KnownCell& base, const std::vector<TomlEntry>& conditions,
                 std::vector<const KnownCell*>& members) const {
    for (const Axis& axis : study_.axes) {
      const auto wanted = base.options.find(axis.key);
      if (wanted != base.options.end())
        keep(axis.key, wanted->second, conditions, members);
      else if (axis.of_arms)
        keep(axis.key, axis.values.front(), conditions, members);
    }
  }

  static void keep(const std::string& key, const OptionValue& value, const std::vector<TomlEntry>& conditions,
                   std::vector<const KnownCell*>& members) {
    const bool named = std::any_of(conditions.begin(), conditions.end(),
                                   [&](const TomlEntry& condition) { return condition.key == key; });
    if (named || is_one(members)) return;
    std::vector<const KnownCell*> like;
    for (const KnownCell* cell : members)
      if (meets(*cell, {key, value, ""})) like.push_back(cell);
    if (!like.empty()) members = std::move(like);
  }

  static void refuse_open(const KnownCell& cell, const std::vector<TomlEntry>& conditions) {
    for (const TomlEntry& condition : conditions) {
      if (cell.open.count(condition.key))
        throw ConfigError(
            fmt::format("{}: {} is searched, so a contrast can't go by it", condition.where, condition.key));
    }
  }

  // The condition that no run meets and the values there are, or all of them.
  std::string missing(const std::vector<TomlEntry>& conditions) const {
    std::string all;
    for (const TomlEntry& condition : conditions) {
      all += fmt::format("{}{} = {}", all.empty() ? "" : ", ", condition.key, to_toml(condition.value));
      if (std::any_of(cells_.begin(), cells_.end(),
                      [&](const KnownCell& cell) { return meets(cell, condition); }))
        continue;
      std::set<std::string> values;
      for (const KnownCell& cell : cells_) {
        const auto option = cell.options.find(condition.key);
        if (option != cell.options.end()) values.insert(to_toml(option->second));
      }
      return fmt::format(
          "none has {} = {} (there is {})", condition.key, to_toml(condition.value),
          values.empty() ? "no run with that option" : fmt::format("{}", fmt::join(values, ", ")));
    }
    return "none has " + all;
  }

  // "protocol ("A-epochs", "B"), ...": three at most, an option that one of them lacks left out where there are others.
  static std::string difference(const KnownCell& one, const KnownCell& other) {
    std::vector<std::string> texts;
    for (const auto& [key, value] : one.options) {
      const auto there = other.options.find(key);
      if (one.open.count(key) || there == other.options.end() || there->second == value) continue;
      texts.push_back(fmt::format("{} ({}, {})", key, to_toml(value), to_toml(there->second)));
    }
    if (texts.empty()) return "the options of their model or optimizer";
    if (texts.size() > 3) texts.resize(3);
    return fmt::format("{}", fmt::join(texts, ", "));
  }

  std::string other_differences(const Contrast& contrast, const ContrastCells& found) const {
    const KnownCell& base = known_of(*found.settings[0].cells.front());
    const KnownCell& arm = known_of(*found.settings[1].cells.front());
    std::string text;
    for (const auto& [key, value] : base.options) {
      const auto there = arm.options.find(key);
      const bool own = std::any_of(contrast.arm.begin(), contrast.arm.end(),
                                   [&, &name = key](const TomlEntry& entry) { return entry.key == name; });
      if (own || there == arm.options.end() || there->second == value || base.open.count(key)) continue;
      text +=
          fmt::format("{}{} {} / {}", text.empty() ? "" : ", ", key, to_toml(value), to_toml(there->second));
    }
    return text;
  }

  static std::vector<int64_t> common_seeds(const std::vector<PickedSetting>& settings) {
    std::map<int64_t, std::set<size_t>> having;
    for (size_t i = 0; i < settings.size(); ++i)
      for (const Cell* cell : settings[i].cells) having[cell->options.train.seed].insert(i);
    std::vector<int64_t> seeds;
    for (const auto& [seed, in] : having)
      if (in.size() == settings.size()) seeds.push_back(seed);
    return seeds;
  }

  const Study& study_;
  std::vector<KnownCell> cells_;
};

}  // namespace

std::vector<ContrastCells> cells_of_contrasts(const Study& study, const std::vector<Cell>& cells) {
  std::vector<ContrastCells> found;
  if (study.contrasts.empty()) return found;
  ContrastResolver resolver(study, cells);
  for (const Contrast& contrast : study.contrasts) found.push_back(resolver.resolve(contrast));
  return found;
}

}  // namespace basin
