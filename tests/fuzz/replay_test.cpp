// The corpus of `make fuzz`, read once: whole files are taken, what a fuzzer made of them is refused in one line.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "tests/fuzz/readers.h"
#include "tests/support/environment.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_files.h"

namespace basin::fuzz {
namespace {

std::vector<std::filesystem::path> corpus_of(const std::string& kind) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(testing::source_folder() + "/tests/fuzz/corpus/" + kind))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

class Corpus : public ::testing::TestWithParam<Reader> {
 protected:
  std::string said_of(std::string_view bytes) { return fuzz::said_of(GetParam(), bytes, folder_ / "file"); }

 private:
  testing::TemporaryFolder folder_;
};

TEST_P(Corpus, IsReadOrRefusedInOneLine) {
  int whole = 0;
  for (const std::filesystem::path& path : corpus_of(GetParam().kind)) {
    std::string said;
    ASSERT_NO_THROW(said = said_of(testing::slurp(path))) << path;
    if (path.filename().string().starts_with("whole")) {
      EXPECT_EQ(said, "") << path;
      ++whole;
    }
  }
  EXPECT_GT(whole, 0) << "mutants are of a file that is read";
}

TEST_P(Corpus, EveryBeginningIsReadOrRefusedInOneLine) {
  const std::string bytes = testing::slurp(corpus_of(GetParam().kind).back());
  for (size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 200)
    ASSERT_NO_THROW(said_of(std::string_view(bytes).substr(0, size))) << size;
}

INSTANTIATE_TEST_SUITE_P(Readers, Corpus, ::testing::ValuesIn(readers()),
                         [](const auto& info) { return info.param.kind; });

}  // namespace
}  // namespace basin::fuzz
