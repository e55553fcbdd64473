// Files as numpy saves them, written by hand after its description of the format (numpy.lib.format).
#include "data/npy.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/files.h"
#include "tests/support/process_memory.h"
#include "tests/support/temporary_folder.h"

namespace basin::testing {
namespace {

/// Version 1 of the format: the magic, two bytes of version, two of length, and a header that ends at a multiple of 64.
std::string header_of_bytes(int64_t count) {
  std::string text = "{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::to_string(count) + ",), }";
  text.resize(128 - 10 - 1, ' ');
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(text.size() + 1) + '\0' + text + '\n';
}

// 256 MiB, all of them a hole but the last byte.
TEST(MappedNpy, IsReadAsItIsUsed) {
  constexpr int64_t kMebibyte = 1 << 20, kCount = 256 * kMebibyte;
  const TemporaryFolder folder;
  const std::string path = folder / "large.npy", header = header_of_bytes(kCount);
  write_file_atomically(path, header);
  std::filesystem::resize_file(path, header.size() + kCount - 1);
  std::ofstream(path, std::ios::app) << '\7';
  const int64_t before = of_this_process("VmRSS:");
  const at::Tensor array = mapped_npy(path);
  ASSERT_EQ(array.numel(), kCount);
  EXPECT_EQ(array[kCount - 1].item<int>(), 7);
  EXPECT_EQ(array[kCount / 2].item<int>(), 0);
  // Two pages, with what the kernel maps around them, and what an item takes.
  EXPECT_LT(of_this_process("VmRSS:") - before, 8 * kMebibyte);
  EXPECT_EQ(array.sum().item<int64_t>(), 7);
  EXPECT_GT(of_this_process("VmRSS:") - before, 200 * kMebibyte) << "the measure sees no pages of files";
}

}  // namespace
}  // namespace basin::testing
