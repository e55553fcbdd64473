#include "sweep/pilot.h"

#include "core/error.h"
#include "core/math/statistics.h"
#include "io/schema.h"

namespace basin {
namespace {

struct MeanError {
  double variance, degrees_of_freedom;
};

// The formulas of basin/analysis/stats.py, with expectations in place of estimates.
MeanError error_of_mean(const EffectVariances& v, double seeds, double images) {
  const double rest = v.rest / (seeds * images);
  const double by_seed = v.seed / seeds + rest, by_image = v.image / images + rest;
  const double variance = std::max(by_seed + by_image - rest, by_image);
  double spread = by_seed * by_seed / (seeds - 1);
  if (images > 1) spread += by_image * by_image / (images - 1) + rest * rest / ((seeds - 1) * (images - 1));
  return {variance, spread > 0 ? std::max(seeds - 1, variance * variance / spread) : seeds - 1};
}

// A hypothesis' margin in the unit of the variances: points / 100, the logarithm of a factor, or itself.
double margin_in_unit(const Contrast& contrast, double margin) {
  if (contrast.kind == Contrast::Kind::recovery) return margin;
  if (contrast.scale == "ratio") return std::log(margin);
  return contrast.outcome == "test_acc" ? margin / 100 : margin;
}

double or_zero(double variance) { return std::isfinite(variance) ? variance : 0; }

}  // namespace

Pilot::Pilot(const std::string& path) {
  const h5::File file = open_schema_file(path, kVerdictsSchema);
  const h5::Group group = file.group("contrasts");
  const auto texts = [&](const char* name) { return group.dataset(name).read_texts(); };
  const auto numbers = [&](const char* name) { return group.dataset(name).read<double>(); };
  const std::vector<std::string> names = texts("name"), outcomes = texts("outcome"), scales = texts("scale");
  const std::vector<double> seed = numbers("var_seed"), image = numbers("var_image"),
                            rest = numbers("var_rest");
  const std::vector<std::string> kinds =
      group.has("kind") ? texts("kind") : std::vector<std::string>(names.size(), "plain");
  for (const size_t size :
       {kinds.size(), outcomes.size(), scales.size(), seed.size(), image.size(), rest.size()}) {
    if (size != names.size()) throw IoError(path + ": the columns of /contrasts differ in length");
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (!std::isfinite(seed[i])) continue;  // one seed: nothing is known
    rows_.push_back({names[i],
                     kinds.at(i),
                     outcomes[i],
                     scales[i],
                     {seed[i], or_zero(image[i]), or_zero(rest[i]), names[i]}});
  }
}

bool Pilot::is_namesake(const Row& row, const Contrast& contrast) {
  if (row.name != contrast.name) return false;
  if (contrast.kind == Contrast::Kind::difference) return row.kind == "difference";
  return row.kind == "plain" && row.outcome == contrast.outcome && row.scale == contrast.scale;
}

std::optional<EffectVariances> Pilot::of(const Contrast& contrast, const std::vector<Contrast>& all) const {
  if (contrast.kind == Contrast::Kind::recovery) return std::nullopt;
  for (const Row& row : rows_)
    if (is_namesake(row, contrast)) return row.variances;
  if (contrast.kind == Contrast::Kind::difference) {
    const auto one = of(contrast_named(all, contrast.minuend), all);
    const auto two = of(contrast_named(all, contrast.subtrahend), all);
    if (!one || !two) return std::nullopt;
    return EffectVariances{one->seed + two->seed, one->image + two->image, one->rest + two->rest,
                           one->source + " + " + two->source};
  }
  std::optional<EffectVariances> largest;
  for (const Row& row : rows_) {
    if (row.kind != "plain" || row.outcome != contrast.outcome || row.scale != contrast.scale) continue;
    if (!largest || row.variances.seed > largest->seed) largest = row.variances;
  }
  return largest;
}

int64_t seeds_needed(const EffectVariances& variances, int64_t images, const Asked& asked) {
  const double test = kAlpha / static_cast<double>(asked.comparisons) / (asked.equivalence ? 1 : 2);
  const double missed = (1 - kPower) / (asked.equivalence ? 2 : 1);
  for (int64_t seeds = kLeastSeeds; seeds <= kMostSeeds; ++seeds) {
    const auto [variance, freedom] =
        error_of_mean(variances, static_cast<double>(seeds), static_cast<double>(images));
    const double reach = student_quantile(freedom, test) + student_quantile(freedom, missed);
    if (reach * std::sqrt(variance) < asked.margin) return seeds;
  }
  return 0;
}

std::vector<Asked> asked_of(const Contrast& contrast, const std::vector<Hypothesis>& hypotheses) {
  std::vector<Asked> asked;
  for (const Hypothesis& h : hypotheses) {
    const size_t parts = h.rule == "any" ? h.contrasts.size() : 1;
    for (size_t i = 0; i < h.contrasts.size(); ++i) {
      if (h.contrasts[i] != contrast.name || std::isnan(h.margins[i])) continue;
      asked.push_back({margin_in_unit(contrast, h.margins[i]), h.expect[i] == "equivalent",
                       static_cast<int64_t>(parts * hypotheses.size())});
    }
  }
  return asked;
}

int64_t seeds_needed(const EffectVariances& variances, int64_t images, const std::vector<Asked>& asked) {
  int64_t most = 0;
  for (const Asked& one : asked) {
    const int64_t seeds = seeds_needed(variances, images, one);
    if (seeds == 0) return 0;
    most = std::max(most, seeds);
  }
  return most;
}

}  // namespace basin
