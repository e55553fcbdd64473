// defines: ExampleStream, the endless stream of reshuffled epochs, and Batch, a slice of it.
#pragma once

#include <cstdint>
#include <vector>

namespace basin {

/// A slice of the stream. With duplicates merged, an example that occurs k times is listed once with count k.
struct Batch {
  std::vector<int64_t> examples;   // indices into the training split, in order of first appearance
  std::vector<int64_t> counts;     // how often each comes up; all 1 unless merged
  std::vector<int64_t> positions;  // stream position of the first appearance (seeds augmentation)
  int64_t size = 0;                // logical batch size = sum of counts
};

/// Epoch e is a permutation of 0..n-1 drawn from derive_seed(master_seed, "data-order", e) alone; epochs are
/// laid end to end. Batch t of size B is positions [tB, (t+1)B): the same order for every B, and B may exceed
/// n.
///
/// The permutation is Fisher and Yates's shuffle of 0..n-1 from the end: for i = n-1, ..., 1 swap elements i
/// and r mod (i+1), where r is the next number of std::mt19937_64 below the largest multiple of i+1 (others
/// are thrown away, so the draw is unbiased; std::uniform_int_distribution differs between libraries). No
/// state between epochs: any position can be resumed. Memory: one permutation and one slot per example. Cost
/// of a new epoch: n draws.
class ExampleStream {
 public:
  /// ConfigError where n < 1.
  ExampleStream(uint64_t master_seed, int64_t n);
  Batch slice(int64_t start, int64_t count, bool merge_duplicates);

 private:
  const std::vector<int64_t>& permutation(int64_t epoch);
  uint64_t master_seed_;
  int64_t n_;
  int64_t cached_epoch_ = -1;
  std::vector<int64_t> cached_;
  std::vector<int64_t> slot_;  // of an example in the batch being merged; -1: not in it
};

}  // namespace basin
