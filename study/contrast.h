// defines: Contrast and Hypothesis, what a study asks of its runs; read_contrasts() and read_hypotheses().
#pragma once

#include <string>
#include <vector>

#include "core/toml_file.h"

namespace basin {

/// [[contrast]], docs/study.md. With m the mean of an outcome over the seeds of a setting (and its test images), the effect is
///   plain       m(arm) - m(base), or m(arm) / m(base) where scale = "ratio";
///   difference  effect(minuend) - effect(subtrahend), of ratios their quotient;
///   recovery    R = (m(arm) - m(large)) / (m(small) - m(large)), small and large the base and arm of a plain contrast.
/// Effects and their intervals are computed in Python (basin.contrasts).
struct Contrast {
  enum class Kind { plain, difference, recovery };
  std::string name;
  std::string where;  // "file:line" of its table
  Kind kind = Kind::plain;
  /// Options and their values, of the options' own types. The arm's are what differs from base, or from that of `recovers`.
  std::vector<TomlEntry> base, arm;
  /// A derived contrast has those of what it is made from.
  std::string outcome, at = "end", scale;
  std::string minuend, subtrahend, recovers;  // names of other contrasts
  bool exploratory = false;                   // added after the runs: no part of what seeds are derived from
  std::string canonical;                      // study/canonical_text.h
};

/// [[hypothesis]], docs/study.md.
struct Hypothesis {
  std::string name, where, claim, source;
  std::vector<std::string> contrasts;
  std::string rule = "all";         // all | any
  std::vector<std::string> expect;  // greater | less | different | equivalent, one for each contrast
  std::vector<double>
      margins;  // one for each: points for test_acc, a factor for ratios, else in the outcome's unit
  bool exploratory = false;
  std::string canonical;
};

/// The tables [[contrast]] in file order. ConfigError with file and line for unknown keys, options, probes and numbers, values
/// that an option doesn't take, a name twice, parts that don't go together, references to nothing or in a circle. Whether the
/// study has runs for them is asked later (study/contrast_cells.h).
std::vector<Contrast> read_contrasts(const TomlTableArray& tables);
std::vector<Hypothesis> read_hypotheses(const TomlTableArray& tables, const std::vector<Contrast>& contrasts);

/// The contrast of that name, which is known to be there.
const Contrast& contrast_named(const std::vector<Contrast>& contrasts, const std::string& name);

/// Conditions that a recovery's or a plain contrast's arm holds: those of base with the arm's own in their place.
std::vector<TomlEntry> arm_conditions(const std::vector<TomlEntry>& base, const std::vector<TomlEntry>& arm);

/// The smallest margin of the hypotheses that name the contrast; NaN where none does.
double margin_of(const Contrast& contrast, const std::vector<Hypothesis>& hypotheses);

/// Before a training loss: outcomes where annealed branches end at it, by interpolation between a run's own.
inline constexpr const char* kAnnealed = "annealed-";

/// "end@twin" as "end" and true: the number that a probe measured at the equal-norm twin (models/twin.h).
struct ContrastPlace {
  std::string label;
  bool twin = false;
};
ContrastPlace contrast_place(const std::string& at);

/// "probe.top_eigenvalues.lambda_1" as probe and number; both empty for other outcomes.
struct ProbeOutcomeName {
  std::string probe, entry;
};
ProbeOutcomeName probe_outcome(const std::string& outcome);

}  // namespace basin
