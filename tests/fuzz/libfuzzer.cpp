// LibFuzzer's door: `fuzz KIND [libFuzzer's options] CORPUS...`.
#include <ATen/Parallel.h>

#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/readers.h"
#include "tests/support/temporary_folder.h"

namespace {
const basin::fuzz::Reader* fuzzed = nullptr;
}

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  if (*argc < 2) {
    std::fputs("usage: fuzz KIND [libFuzzer's options] CORPUS...; kinds:", stderr);
    for (const basin::fuzz::Reader& reader : basin::fuzz::readers())
      std::fprintf(stderr, " %s", reader.kind.c_str());
    std::fputc('\n', stderr);
    std::exit(2);
  }
  at::set_num_threads(1);
  fuzzed = &basin::fuzz::reader_of((*argv)[1]);
  (*argv)[1] = (*argv)[0];  // libFuzzer reads what is left
  ++*argv;
  --*argc;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const basin::testing::TemporaryFolder folder;
  basin::fuzz::said_of(*fuzzed, {reinterpret_cast<const char*>(data), size}, folder / "file");
  return 0;
}
