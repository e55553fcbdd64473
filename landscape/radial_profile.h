// defines: radius_of_rise(), how far one can go before the loss has risen; log_volume(), what that says in
// the mean.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <vector>

namespace basin {

/// L(w + r d) along one ray, each r evaluated once. A loss that is not finite counts as infinite.
class Ray {
 public:
  explicit Ray(std::function<double(double r)> loss) : loss_(std::move(loss)) {}
  double at(double r);

 private:
  std::function<double(double r)> loss_;
  std::map<double, double> known_;
};

struct RadiusSearch {
  double first = 0.01;      // where the bracket begins
  double most = 10;         // no farther
  double tolerance = 0.01;  // the last bracket's width over r
};

struct Radius {
  double value = std::numeric_limits<double>::quiet_NaN();  // NaN: not reached up to `most`
  double error = std::numeric_limits<double>::quiet_NaN();  // half the last bracket
  bool reached = false;
};

/// The r at which L(w + r d) = target > L(w). Bracket: from `first` by factors of 2 outwards while the loss
/// is below the target, or inwards while it is not; then bisection in log r. Where the loss doesn't only rise
/// there are several such r: found is the first seen on the way from `first`, and one where the loss is back
/// below the target a factor of 2 on is not seen.
///
/// Cost: one loss per step of the bracket and log2(0.7 / tolerance) more, some of them shared by the targets of
/// one ray. Not reached: also where the loss stays above the target down to 2^-60 first.
Radius radius_of_rise(Ray& ray, double target, const RadiusSearch& search);

/// ok; censored: some directions never rose, they enter as the farthest radius, so both means are lower bounds;
/// not_resolved: none rose; failed: along some it isn't known whether.
enum class VolumeStatus { ok, censored, not_resolved, failed };
const char* to_string(VolumeStatus status);

/// The volume of the region around w in which the loss stays below the target, seen from w along random
/// directions that are uniform on the sphere: V = V_n E[r^n], V_n the unit ball's volume, n the number of weights
/// that move, where the region is star-shaped about w.
struct LogVolume {
  double mean_log_radius = std::numeric_limits<double>::quiet_NaN();
  double standard_error = std::numeric_limits<double>::quiet_NaN();  // over directions
  /// (1/n) log mean(r^n) over the directions drawn.
  double log_mean_power = std::numeric_limits<double>::quiet_NaN();
  double effective_directions = std::numeric_limits<double>::quiet_NaN();  // (sum r^n)^2 / sum r^2n
  int64_t reached = 0, directions = 0;
  VolumeStatus status = VolumeStatus::not_resolved;
};

/// (1/n) log(V / V_n) lies above mean log r (Jensen) and is estimated, from below too, by log_mean_power:
/// with n in the thousands E[r^n] is carried by directions so rare that none is drawn, so what comes out is
/// the largest radius drawn, less log(directions)/n. effective_directions says so: near 1, it's that one.
/// mean log r is the number to compare networks by: unbiased, with an error, and dominated by the many steep
/// directions. radii: NaN where not reached. `failed`: directions besides, along which it isn't known; no number then.
LogVolume log_volume(const std::vector<double>& radii, int64_t failed, double farthest, double weights);

}  // namespace basin
