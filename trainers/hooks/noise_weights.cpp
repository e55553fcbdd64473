#include "trainers/hooks/noise_weights.h"

#include <c10/util/Exception.h>

#include <cmath>
#include <numbers>
#include <numeric>

#include "core/math/philox.h"
#include "core/seed.h"

namespace basin {
namespace {

constexpr double kRounding = 1e-12;  // of 1/b and 1/n_eff, some operations each

uint32_t low(int64_t value) { return static_cast<uint32_t>(static_cast<uint64_t>(value)); }
uint32_t high(int64_t value) { return static_cast<uint32_t>(static_cast<uint64_t>(value) >> 32); }

// Above 0 and below 1: 53 bits and half of the last.
double between_0_and_1(uint32_t first, uint32_t second) {
  const uint64_t bits = (uint64_t{first} << 21) ^ (second >> 11);
  return (static_cast<double>(bits) + 0.5) * 0x1p-53;
}

}  // namespace

int64_t NoiseUnits::size() const { return std::accumulate(counts.begin(), counts.end(), int64_t{0}); }

double NoiseUnits::effective() const {
  const double size = static_cast<double>(this->size());
  double squares = 0;
  for (const int64_t count : counts) squares += static_cast<double>(count) * static_cast<double>(count);
  return size * size / squares;
}

double noise_strength(const NoiseUnits& units, double b) {
  const double n_eff = units.effective(), m = static_cast<double>(units.counts.size());
  if (std::abs(b - n_eff) <= kRounding * n_eff) return 0;
  if (!(b < n_eff)) return NAN;
  return m / std::sqrt(m - 1) * std::sqrt(1 / b - 1 / n_eff);
}

std::vector<double> noise_weights(const NoiseUnits& units, const std::vector<double>& xi, double s) {
  TORCH_CHECK(xi.size() == units.counts.size(), "one number for each unit");
  const double size = static_cast<double>(units.size()), m = static_cast<double>(xi.size());
  const double mean = std::accumulate(xi.begin(), xi.end(), 0.0) / m;
  std::vector<double> weights;
  for (size_t x = 0; x < xi.size(); ++x)
    weights.push_back(static_cast<double>(units.counts[x]) / size + s * (xi[x] - mean) / m);
  return weights;
}

NoiseDraws::NoiseDraws(uint64_t seed, const char* stream, bool rademacher) : rademacher_(rademacher) {
  const uint64_t key = derive_seed(seed, stream);
  key_ = {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
}

// By Box and Muller where it is normal.
double NoiseDraws::at(int64_t update, int64_t unit) const {
  const std::array<uint32_t, 4> words = philox({low(unit), high(unit), low(update), high(update)}, key_);
  if (rademacher_) return (words[0] & 1U) != 0 ? 1 : -1;
  const double radius = std::sqrt(-2 * std::log(between_0_and_1(words[0], words[1])));
  return radius * std::cos(2 * std::numbers::pi * between_0_and_1(words[2], words[3]));
}

}  // namespace basin
