#include "study/quasi_random.h"

#include <cmath>
#include <numeric>
#include <random>

#include "core/seed.h"

namespace basin {
namespace {

std::vector<int64_t> first_primes(int64_t count) {
  std::vector<int64_t> primes;
  for (int64_t candidate = 2; static_cast<int64_t>(primes.size()) < count; ++candidate) {
    const auto divides = [&](int64_t prime) { return candidate % prime == 0; };
    if (std::none_of(primes.begin(), primes.end(), divides)) primes.push_back(candidate);
  }
  return primes;
}

// Places of base b that a double between 0 and 1 can tell apart.
int64_t places_of(int64_t base) { return static_cast<int64_t>(std::ceil(53 / std::log2(base))); }

// Fisher and Yates. The standard fixes mt19937_64's numbers, but not those of its distributions or of
// std::shuffle; the bias of the remainder is of the order 2^-60.
std::vector<int64_t> permutation(int64_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> digits(static_cast<size_t>(size));
  std::iota(digits.begin(), digits.end(), 0);
  for (size_t i = digits.size() - 1; i > 0; --i) std::swap(digits[i], digits[random() % (i + 1)]);
  return digits;
}

}  // namespace

HaltonSequence::HaltonSequence(int64_t dimensions, int64_t seed) {
  for (const int64_t prime : first_primes(dimensions)) {
    Base& base = bases_.emplace_back(Base{prime, {}});
    const uint64_t stream = derive_seed(static_cast<uint64_t>(seed), "halton", static_cast<uint64_t>(prime));
    for (int64_t place = 0; seed != 0 && place < places_of(prime); ++place) {
      base.permutations.push_back(
          permutation(prime, derive_seed(stream, "place", static_cast<uint64_t>(place))));
    }
  }
}

std::vector<double> HaltonSequence::point(int64_t index) const {
  std::vector<double> coordinates;
  for (const Base& base : bases_) {
    double value = 0, weight = 1;
    int64_t left = index;
    for (size_t place = 0; left > 0 || place < base.permutations.size(); ++place) {
      const int64_t digit = left % base.prime;
      left /= base.prime;
      weight /= static_cast<double>(base.prime);
      const bool scrambled = place < base.permutations.size();
      value += weight *
               static_cast<double>(scrambled ? base.permutations[place][static_cast<size_t>(digit)] : digit);
    }
    coordinates.push_back(std::min(value, std::nextafter(1.0, 0.0)));
  }
  return coordinates;
}

}  // namespace basin
