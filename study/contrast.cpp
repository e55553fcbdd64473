#include "study/contrast.h"

#include "core/error.h"
#include "core/nearest.h"
#include "probes/registry.h"
#include "study/canonical_text.h"
#include "study/run_options.h"
#include "study/values.h"

namespace basin {
namespace {

const std::vector<std::string>& plain_outcomes() {
  static const std::vector<std::string> names = {"test_acc", "test_loss", "updates", "examples"};
  return names;
}

// "base.batch_size" in "base": "batch_size"; empty for other keys.
std::string key_in(const std::string& key, const std::string& table) {
  return key.starts_with(table + ".") ? key.substr(table.size() + 1) : "";
}

void check_name(const std::string& kind, const std::string& name, const std::string& where,
                std::set<std::string>& known) {
  if (name.empty()) throw ConfigError(fmt::format("{}: the {} has no `name`", where, kind));
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '_' || c == '.';
  });
  if (!plain)
    throw ConfigError(
        fmt::format("{}: name = \"{}\" may have letters, digits, -, _ and . alone", where, name));
  if (!known.insert(name).second)
    throw ConfigError(fmt::format("{}: there is another {} \"{}\"", where, kind, name));
}

// The option's key and the value as its own type.
TomlEntry condition_entry(OptionTable& options, const std::string& key, const TomlEntry& entry) {
  options.set(key, entry.value, entry.where);
  const Option& option = options.at(key);
  if (option.traits.is_repetition)
    throw ConfigError(fmt::format("{}: a contrast takes all seeds, so it can't go by {}", entry.where, key));
  if (!option.traits.may_be_swept()) {
    throw ConfigError(
        fmt::format("{}: {} does not tell runs apart, so a contrast can't go by it", entry.where, key));
  }
  return {key, option.get(), entry.where};
}

void check_outcome(const std::string& outcome, const std::string& where) {
  if (contains(plain_outcomes(), outcome)) return;
  if (!outcome.starts_with("probe.")) {
    std::vector<std::string> known = plain_outcomes();
    known.emplace_back("probe.PROBE.NUMBER");
    throw ConfigError(where + ": " + unknown_name("outcome", outcome, known));
  }
  const auto [probe, entry] = probe_outcome(outcome);
  const std::vector<ProbeEntry>& probes = probe_registry();
  const std::vector<std::string> names = names_of(probes);
  if (!contains(names, probe)) throw ConfigError(where + ": " + unknown_name("probe", probe, names));
  const ProbeEntry& found = find_entry(probes, probe, "probe");
  if (!has_entry(found, entry)) {
    throw ConfigError(fmt::format("{}: {} (#: a number, *: any text)", where,
                                  unknown_name("number of the probe " + probe, entry, found.entries)));
  }
}

bool is_loss(const std::string& at, const std::string& start) {
  const std::string loss = at.starts_with(start) ? at.substr(start.size()) : "";
  return !loss.empty() && loss.find_first_not_of("0123456789.e-+") == std::string::npos;
}

void check_place(const Contrast& contrast, const std::string& where) {
  const auto& [at, twin] = contrast_place(contrast.at);
  if (twin && probe_outcome(contrast.outcome).probe.empty())
    throw ConfigError(
        fmt::format("{}: at = \"{}\": only probes measure at the twin, and {} is no probe's number", where,
                    contrast.at, contrast.outcome));
  if (at == "end" || at == "budget" || is_loss(at, "loss-")) return;
  if (!is_loss(at, kAnnealed)) {
    throw ConfigError(where + ": " +
                      unknown_name("at", contrast.at,
                                   {"end", "budget", "loss-LEVEL", "annealed-LOSS", "end@twin",
                                    "loss-LEVEL@twin", "annealed-LOSS@twin"}));
  }
  if (contrast.outcome == "updates" || contrast.outcome == "examples") {
    throw ConfigError(fmt::format("{}: at = \"{}\": {} of annealed branches say nothing", where, contrast.at,
                                  contrast.outcome));
  }
}

// One table of [[contrast]].
class ContrastReader {
 public:
  ContrastReader(OptionTable& options, const std::vector<TomlEntry>& entries, const std::string& where)
      : options_(options) {
    contrast_.where = where;
    bind();
    for (const TomlEntry& entry : entries) read(entry);
    finish();
    contrast_.canonical = canonical_text("contrast", entries);
  }
  Contrast take() { return std::move(contrast_); }

 private:
  void bind() {
    table_.add("name", contrast_.name, anything(), "");
    table_.add("outcome", contrast_.outcome, anything(), "");
    table_.add("at", contrast_.at, anything(), "");
    table_.add("scale", contrast_.scale, one_of({"difference", "ratio"}), "");
    table_.add("minuend", contrast_.minuend, anything(), "");
    table_.add("subtrahend", contrast_.subtrahend, anything(), "");
    table_.add("recovers", contrast_.recovers, anything(), "");
    table_.add("exploratory", contrast_.exploratory, anything(), "");
  }

  void read(const TomlEntry& entry) {
    if (const std::string key = key_in(entry.key, "base"); !key.empty()) {
      contrast_.base.push_back(condition_entry(options_, key, entry));
    } else if (const std::string arm = key_in(entry.key, "arm"); !arm.empty()) {
      contrast_.arm.push_back(condition_entry(options_, arm, entry));
    } else if (entry.key == "base" || entry.key == "arm") {
      throw ConfigError(fmt::format("{}: {} should be a table of options", entry.where, entry.key));
    } else {
      table_.set(entry.key, entry.value, entry.where);
      given_[entry.key] = entry.where;
    }
  }

  void finish() {
    if (given_.count("recovers")) {
      contrast_.kind = Contrast::Kind::recovery;
      refuse({"outcome", "at", "scale", "minuend", "subtrahend"}, "recovers");
      if (!contrast_.base.empty()) refuse_base("recovers");
      need(!contrast_.arm.empty(), "arm");
    } else if (given_.count("minuend") || given_.count("subtrahend")) {
      contrast_.kind = Contrast::Kind::difference;
      refuse({"outcome", "at", "scale"}, "minuend");
      if (!contrast_.base.empty() || !contrast_.arm.empty()) refuse_base("minuend");
      need(given_.count("minuend") > 0, "minuend");
      need(given_.count("subtrahend") > 0, "subtrahend");
    } else {
      need(!contrast_.base.empty(), "base");
      need(!contrast_.arm.empty(), "arm");
      need(given_.count("outcome") > 0, "outcome");
      check_outcome(contrast_.outcome, given_["outcome"]);
      check_place(contrast_, given_["at"]);
      const bool differs = contrast_.outcome == "test_acc" || contrast_.outcome == "test_loss";
      if (contrast_.scale.empty()) contrast_.scale = differs ? "difference" : "ratio";
      refuse_equal_arm(contrast_.base);
    }
  }

  void need(bool there, const char* key) const {
    if (!there)
      throw ConfigError(
          fmt::format("{}: the contrast \"{}\" has no `{}`", contrast_.where, contrast_.name, key));
  }
  void refuse(const std::vector<std::string>& keys, const char* next_to) const {
    for (const std::string& key : keys) {
      const auto given = given_.find(key);
      if (given != given_.end())
        throw ConfigError(fmt::format("{}: `{}` and `{}` exclude each other", given->second, key, next_to));
    }
  }
  void refuse_base(const char* next_to) const {
    const TomlEntry& entry = contrast_.base.empty() ? contrast_.arm.front() : contrast_.base.front();
    throw ConfigError(fmt::format("{}: `{}` and `{}` exclude each other", entry.where,
                                  contrast_.base.empty() ? "arm" : "base", next_to));
  }
  void refuse_equal_arm(const std::vector<TomlEntry>& base) const {
    for (const TomlEntry& own : contrast_.arm) {
      const bool same = std::any_of(base.begin(), base.end(), [&](const TomlEntry& entry) {
        return entry.key == own.key && entry.value == own.value;
      });
      if (same) {
        throw ConfigError(fmt::format("{}: {} = {} is the same in base and arm of \"{}\"", own.where, own.key,
                                      to_toml(own.value), contrast_.name));
      }
    }
  }

  OptionTable& options_;
  Contrast contrast_;
  OptionTable table_;
  std::map<std::string, std::string> given_;  // by key: where
};

// What derived contrasts are made from.
class References {
 public:
  explicit References(std::vector<Contrast>& contrasts) : contrasts_(contrasts) {
    for (Contrast& contrast : contrasts_) names_.push_back(contrast.name);
    for (Contrast& contrast : contrasts_) follow(contrast);
  }

 private:
  void follow(Contrast& contrast) {
    if (contrast.kind == Contrast::Kind::plain || done_.count(contrast.name)) return;
    if (!on_the_way_.insert(contrast.name).second)
      throw ConfigError(
          fmt::format("{}: the contrast \"{}\" is made from itself", contrast.where, contrast.name));
    if (contrast.kind == Contrast::Kind::recovery)
      follow_recovered(contrast);
    else
      follow_parts(contrast);
    done_.insert(contrast.name);
  }

  void follow_recovered(Contrast& contrast) {
    const Contrast& gap = found(contrast, contrast.recovers);
    if (gap.kind != Contrast::Kind::plain) {
      throw ConfigError(fmt::format("{}: \"{}\" recovers \"{}\", which has no base and arm of its own",
                                    contrast.where, contrast.name, gap.name));
    }
    contrast.outcome = gap.outcome;
    contrast.at = gap.at;
    contrast.scale = gap.scale;
  }

  void follow_parts(Contrast& contrast) {
    Contrast& minuend = found(contrast, contrast.minuend);
    Contrast& subtrahend = found(contrast, contrast.subtrahend);
    for (Contrast* part : {&minuend, &subtrahend}) {
      follow(*part);
      if (part->kind == Contrast::Kind::recovery) {
        throw ConfigError(fmt::format("{}: \"{}\" is a recovered fraction, which has no effect to subtract",
                                      contrast.where, part->name));
      }
    }
    if (&minuend == &subtrahend)
      throw ConfigError(
          fmt::format("{}: minuend and subtrahend of \"{}\" are the same", contrast.where, contrast.name));
    if (minuend.outcome != subtrahend.outcome || minuend.scale != subtrahend.scale) {
      throw ConfigError(
          fmt::format("{}: \"{}\" ({}, {}) and \"{}\" ({}, {}) can't be subtracted: another outcome or scale",
                      contrast.where, minuend.name, minuend.outcome, minuend.scale, subtrahend.name,
                      subtrahend.outcome, subtrahend.scale));
    }
    contrast.outcome = minuend.outcome;
    contrast.at = minuend.at;
    contrast.scale = minuend.scale;
  }

  Contrast& found(const Contrast& from, const std::string& name) {
    for (Contrast& contrast : contrasts_)
      if (contrast.name == name) return contrast;
    throw ConfigError(from.where + ": " + unknown_name("contrast", name, names_));
  }

  std::vector<Contrast>& contrasts_;
  std::vector<std::string> names_;
  std::set<std::string> on_the_way_, done_;
};

void check_margin(const Contrast& contrast, double margin, const std::string& where) {
  const auto refuse = [&](const char* wanted) {
    throw ConfigError(
        fmt::format("{}: margin = {:g} for \"{}\" should be {}", where, margin, contrast.name, wanted));
  };
  if (contrast.kind == Contrast::Kind::recovery) {
    if (!(margin > 0 && margin <= 1)) refuse("a fraction of the gap, above 0 and at most 1");
  } else if (contrast.scale == "ratio") {
    if (!(margin > 1)) refuse("a factor above 1");
  } else if (contrast.outcome == "test_acc") {
    if (!(margin > 0 && margin < 100)) refuse("a number of points above 0 and below 100");
  } else if (!(margin > 0)) {
    refuse("above 0");
  }
}

// One entry for each contrast, from one for all or one each.
template <class T>
void spread(std::vector<T>& values, size_t count, const char* key, const std::string& where) {
  if (values.size() == 1) values.resize(count, values.front());
  if (values.size() != count) {
    throw ConfigError(fmt::format("{}: {} has {} entries for {} contrasts: one, or one for each", where, key,
                                  values.size(), count));
  }
}

Hypothesis read_hypothesis(const std::vector<TomlEntry>& entries, const std::string& where,
                           const std::vector<Contrast>& contrasts) {
  Hypothesis h;
  h.where = where;
  OptionTable table;
  table.add("name", h.name, anything(), "");
  table.add("claim", h.claim, anything(), "");
  table.add("source", h.source, anything(), "");
  table.add("contrasts", h.contrasts, anything(), "");
  table.add("rule", h.rule, one_of({"all", "any"}), "");
  table.add("expect", h.expect, one_of({"greater", "less", "different", "equivalent"}), "");
  table.add("margin", h.margins, anything(), "");
  table.add("exploratory", h.exploratory, anything(), "");
  set_all(table, entries);
  const auto need = [&](bool there, const char* key) {
    if (!there) throw ConfigError(fmt::format("{}: the hypothesis \"{}\" has no `{}`", where, h.name, key));
  };
  need(!h.claim.empty(), "claim");
  if (h.contrasts.empty())
    throw ConfigError(fmt::format("{}: the hypothesis \"{}\" names no contrast", where, h.name));
  need(!h.expect.empty(), "expect");
  need(!h.margins.empty(), "margin");
  std::vector<std::string> known;
  for (const Contrast& contrast : contrasts) known.push_back(contrast.name);
  std::set<std::string> named;
  for (const std::string& name : h.contrasts) {
    if (!contains(known, name)) throw ConfigError(where + ": " + unknown_name("contrast", name, known));
    if (!named.insert(name).second)
      throw ConfigError(fmt::format("{}: the hypothesis \"{}\" names \"{}\" twice", where, h.name, name));
    if (!h.exploratory && contrast_named(contrasts, name).exploratory)
      throw ConfigError(
          fmt::format("{}: the contrast \"{}\" is exploratory, so a hypothesis on it is, too", where, name));
  }
  spread(h.expect, h.contrasts.size(), "expect", where);
  spread(h.margins, h.contrasts.size(), "margin", where);
  for (size_t i = 0; i < h.contrasts.size(); ++i)
    check_margin(contrast_named(contrasts, h.contrasts[i]), h.margins[i], where);
  h.canonical = canonical_text("hypothesis", entries);
  return h;
}

}  // namespace

std::vector<Contrast> read_contrasts(const TomlTableArray& tables) {
  std::vector<Contrast> contrasts;
  std::set<std::string> names;
  RunOptions scratch;
  OptionTable options = scratch.table();
  for (size_t i = 0; i < tables.tables.size(); ++i) {
    contrasts.push_back(ContrastReader(options, tables.tables[i], tables.where[i]).take());
    check_name("contrast", contrasts.back().name, tables.where[i], names);
  }
  References{contrasts};
  for (const Contrast& contrast : contrasts) {
    for (const std::string& part : {contrast.minuend, contrast.subtrahend, contrast.recovers}) {
      if (!part.empty() && !contrast.exploratory && contrast_named(contrasts, part).exploratory)
        throw ConfigError(fmt::format("{}: \"{}\" is exploratory, so \"{}\", which is made from it, is, too",
                                      contrast.where, part, contrast.name));
    }
  }
  return contrasts;
}

std::vector<Hypothesis> read_hypotheses(const TomlTableArray& tables,
                                        const std::vector<Contrast>& contrasts) {
  std::vector<Hypothesis> hypotheses;
  std::set<std::string> names;
  for (size_t i = 0; i < tables.tables.size(); ++i) {
    hypotheses.push_back(read_hypothesis(tables.tables[i], tables.where[i], contrasts));
    check_name("hypothesis", hypotheses.back().name, tables.where[i], names);
  }
  return hypotheses;
}

const Contrast& contrast_named(const std::vector<Contrast>& contrasts, const std::string& name) {
  return *std::find_if(contrasts.begin(), contrasts.end(), [&](const Contrast& c) { return c.name == name; });
}

std::vector<TomlEntry> arm_conditions(const std::vector<TomlEntry>& base, const std::vector<TomlEntry>& arm) {
  std::vector<TomlEntry> conditions = arm;
  for (const TomlEntry& entry : base) {
    const bool replaced =
        std::any_of(arm.begin(), arm.end(), [&](const TomlEntry& own) { return own.key == entry.key; });
    if (!replaced) conditions.push_back(entry);
  }
  return conditions;
}

double margin_of(const Contrast& contrast, const std::vector<Hypothesis>& hypotheses) {
  double least = NAN;
  for (const Hypothesis& h : hypotheses) {
    for (size_t i = 0; i < h.contrasts.size(); ++i)
      if (h.contrasts[i] == contrast.name) least = std::fmin(least, h.margins[i]);
  }
  return least;
}

ContrastPlace contrast_place(const std::string& at) {
  constexpr std::string_view kTwin = "@twin";
  const bool twin = at.ends_with(kTwin);
  return {twin ? at.substr(0, at.size() - kTwin.size()) : at, twin};
}

ProbeOutcomeName probe_outcome(const std::string& outcome) {
  if (!outcome.starts_with("probe.")) return {};
  const std::string name = outcome.substr(6);
  const size_t dot = name.find('.');
  return {name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1)};
}

}  // namespace basin
