// defines: Pilot, variances of an earlier sweep's contrasts; seeds_needed(), how many seeds resolve a margin.
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
  /// one of a mean.
  std::optional<EffectVariances> of(const Contrast& contrast, const std::vector<Contrast>& all) const;

 private:
  struct Row {
    std::string name, kind, outcome, scale;
    EffectVariances variances;
  };
  std::vector<Row> rows_;
};

inline constexpr int64_t kMostSeeds = 200, kLeastSeeds = 3;  // no verdict is given on fewer

/// The least S from kLeastSeeds to kMostSeeds with (t_0.975(nu) + t_0.8(nu)) x standard error < margin, nu by Satterthwaite
/// as in basin.analysis.stats: an effect of the size of the margin is then distinguished from 0 in about 80 % of studies. 0: more than
/// kMostSeeds. `margin` in the variances' unit; `images`: N. Approximate: the variances are estimates themselves, from a
/// pilot of a few seeds often half or twice what they should be.
int64_t seeds_needed(const EffectVariances& variances, int64_t images, double margin);

/// A hypothesis' margin in the unit of the variances: points / 100, the logarithm of a factor, or itself.
double margin_in_unit(const Contrast& contrast, double margin);

}  // namespace basin
