// defines: ExampleStream, the endless stream of reshuffled epochs, and Batch, a slice of it.
#pragma once

#include <cstdint>
#include <vector>

namespace basin {

/// A slice of the stream. With duplicates merged, an example that comes up k times stands once with count k.
struct Batch {
  std::vector<int64_t> examples;   // indices into the training split, in order of first appearance
  std::vector<int64_t> counts;     // how often each comes up; all 1 unless merged
  std::vector<int64_t> positions;  // stream position of the first appearance (seeds augmentation)
  int64_t size = 0;                // logical batch size = sum of counts
};

/// Epoch e is a permutation of 0..n-1 drawn from derive_seed(master_seed, "data-order", e) alone; epochs are laid end to
/// end. Batch t of size B is positions [tB, (t+1)B): the same order for every B, and B may exceed n.
/// Memory: one permutation.
class ExampleStream {
 public:
  ExampleStream(uint64_t master_seed, int64_t n);
  Batch slice(int64_t start, int64_t count, bool merge_duplicates);

 private:
  const std::vector<int64_t>& permutation(int64_t epoch);
  uint64_t master_seed_;
  int64_t n_;
  int64_t cached_epoch_ = -1;
  std::vector<int64_t> cached_;
};

}  // namespace basin
