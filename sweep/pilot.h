// defines: Pilot, variances of an earlier sweep's contrasts; Asked and seeds_needed(), how many seeds resolve a margin.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "study/contrast.h"

namespace basin {

/// Variances of an effect paired by seed and test image, in its own unit (test_acc: 0.02 is two points; a ratio: its natural logarithm):
///   Var(mean) = seed/S + image/N + rest/(S N),
/// image and rest 0 where an outcome has no images. docs/reading-results.md.
struct EffectVariances {
  double seed = 0, image = 0, rest = 0;
  std::string source;  // name of the pilot's contrast
};

inline constexpr const char* kVerdictsSchema = "basin/verdicts";

/// An OUT/verdicts.h5, which the Python side writes.
class Pilot {
 public:
  /// IoError where the file is missing, damaged or lacks a column.
  explicit Pilot(const std::string& path);
  /// Those of the pilot's contrast of the same name; else the largest of the plain ones with the same outcome and scale. A difference
  /// without a namesake has the sum of its parts'. Nothing where there is no such contrast, and of a recovery, whose error isn't
  /// one of a mean. A contrast of that name with another outcome or scale is no namesake: its variances are of something else.
  std::optional<EffectVariances> of(const Contrast& contrast, const std::vector<Contrast>& all) const;

 private:
  struct Row {
    std::string name, kind, outcome, scale;
    EffectVariances variances;
  };
  static bool is_namesake(const Row& row, const Contrast& contrast);

  std::vector<Row> rows_;
};

inline constexpr int64_t kMostSeeds = 200, kLeastSeeds = 3;  // no verdict is given on fewer
inline constexpr double kAlpha = 0.05, kPower = 0.8;

/// What one hypothesis asks of a contrast. `margin`: in the variances' unit, above 0.
struct Asked {
  double margin = 0;
  bool equivalence = false;
  int64_t comparisons = 1;  // that alpha is shared among
};

/// What each hypothesis that names the contrast with a margin asks. Alpha is shared among the contrasts of a hypothesis with rule
/// "any" and among all hypotheses: Holm's first and hardest step.
std::vector<Asked> asked_of(const Contrast& contrast, const std::vector<Hypothesis>& hypotheses);

/// The least S from kLeastSeeds to kMostSeeds with reach(nu) x standard error < margin, nu by Satterthwaite as in
/// basin.analysis.stats, c comparisons and t(p; nu) the quantile above which p lies:
///   a difference   reach = t(alpha / 2c) + t(1 - power): an effect of the size of the margin is distinguished from 0,
///   equivalence    reach = t(alpha / c) + t((1 - power) / 2): no effect is shown to lie within the margin (two one-sided tests),
/// either in about 80 % of studies. 0: more than kMostSeeds. `images`: N. Approximate: the variances are estimates themselves, from
/// a pilot of a few seeds often half or twice what they should be.
int64_t seeds_needed(const EffectVariances& variances, int64_t images, const Asked& asked);

/// The most that any of them needs; 0: one needs more than kMostSeeds.
int64_t seeds_needed(const EffectVariances& variances, int64_t images, const std::vector<Asked>& asked);

}  // namespace basin
