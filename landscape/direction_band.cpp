#include "landscape/direction_band.h"

#include <cmath>

#include "core/math/statistics.h"

namespace basin {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

struct Band {
  double mean = kNone, error = kNone, low = kNone, high = kNone, lowest = kNone, highest = kNone, finite = 0;
};

Band band_of(const std::vector<double>& values) {
  std::vector<double> finite;
  std::copy_if(values.begin(), values.end(), std::back_inserter(finite),
               [](double v) { return std::isfinite(v); });
  Band band;
  band.finite = static_cast<double>(finite.size());
  if (!finite.empty()) band.lowest = *std::min_element(finite.begin(), finite.end());
  if (finite.size() < values.size()) return band;
  const SampleMean mean = mean_of(values);
  band.mean = mean.value;
  band.error = mean.standard_error;
  band.highest = *std::max_element(values.begin(), values.end());
  if (values.size() < 2) return band;
  const double reach = student_quantile(static_cast<double>(values.size() - 1)) * mean.standard_error;
  band.low = mean.value - reach;
  band.high = mean.value + reach;
  return band;
}

}  // namespace

std::vector<SurfaceColumn> direction_band(const SurfacePlot& plot, const SurfaceColumn& column) {
  const size_t directions = plot.axes.at(0).values.size(), points = plot.axes.at(1).values.size();
  const std::string of = column.long_name + " over directions";
  std::vector<SurfaceColumn> columns = {
      {column.name, column.units, "mean of " + of, "direction-band", {}},
      {column.name + "_error", column.units, "standard error of the mean of " + of, "direction-band", {}},
      {column.name + "_low",
       column.units,
       "lower end of the 95 % interval of the mean of " + of,
       "direction-band",
       {}},
      {column.name + "_high",
       column.units,
       "upper end of the 95 % interval of the mean of " + of,
       "direction-band",
       {}},
      {column.name + "_lowest", column.units, "lowest " + of, "direction-band", {}},
      {column.name + "_highest", column.units, "highest " + of, "direction-band", {}},
      {column.name + "_finite",
       "directions",
       "directions with a finite " + column.long_name,
       "direction-band",
       {}}};
  for (size_t point = 0; point < points; ++point) {
    std::vector<double> values;
    for (size_t d = 0; d < directions; ++d) values.push_back(column.values.at(d * points + point));
    const Band band = band_of(values);
    const double parts[] = {band.mean,   band.error,   band.low,   band.high,
                            band.lowest, band.highest, band.finite};
    for (size_t i = 0; i < columns.size(); ++i) columns[i].values.push_back(parts[i]);
  }
  return columns;
}

}  // namespace basin
