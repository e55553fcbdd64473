#include "data/text.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/files.h"
#include "data/load.h"
#include "data/network_inputs.h"
#include "tests/support/temporary_folder.h"

namespace basin {
namespace {

using ::testing::HasSubstr;

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// Text of the tokens of a window.
std::string spelled(const Dataset& data, const at::Tensor& tokens) {
  std::string text;
  const at::Tensor row = tokens.contiguous();
  for (int64_t i = 0; i < row.numel(); ++i)
    text += data.class_names[static_cast<size_t>(row.const_data_ptr<int64_t>()[i])];
  return text;
}

std::vector<std::string> windows(const Dataset& data, const at::Tensor& rows) {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < rows.size(0); ++i) texts.push_back(spelled(data, rows[i]));
  return texts;
}

DataOptions cut(int64_t context, int64_t stride, double test_share, double validation = 0) {
  DataOptions options;
  options.context = context;
  options.stride = stride;
  options.test_share = test_share;
  options.validation = validation;
  return options;
}

const TextFile kAlphabet{"abc.txt", "abcdefghijklmnopqrst"};  // 20 characters

TEST(Text, IsCutIntoWindowsWithTheTokenThatFollows) {
  const Dataset data = text_windows("text", kAlphabet, cut(3, 0, 0.25, 0.27));
  // 15 to train and validate on, of which 4 validate: "abcdefghijk", "lmno", and "pqrst" to test.
  EXPECT_EQ(windows(data, data.train.inputs), (std::vector<std::string>{"abc", "def", "ghi"}));
  EXPECT_EQ(windows(data, data.train.labels), (std::vector<std::string>{"bcd", "efg", "hij"}));
  EXPECT_EQ(windows(data, data.validation.inputs), (std::vector<std::string>{"lmn"}));
  EXPECT_EQ(windows(data, data.validation.labels), (std::vector<std::string>{"mno"}));
  EXPECT_EQ(windows(data, data.test.inputs), (std::vector<std::string>{"pqr"}));
  EXPECT_EQ(windows(data, data.test.labels), (std::vector<std::string>{"qrs"}));
  EXPECT_EQ(data.classes(), 20);
  EXPECT_EQ(data.outputs(), 20);
}

TEST(Text, HasTrainingWindowsAtEveryStride) {
  const Dataset data = text_windows("text", kAlphabet, cut(4, 1, 0.5));
  EXPECT_EQ(windows(data, data.train.inputs),
            (std::vector<std::string>{"abcd", "bcde", "cdef", "defg", "efgh", "fghi"}));
  EXPECT_EQ(windows(data, data.test.inputs), (std::vector<std::string>{"klmn", "opqr"}));
  // Views: 20 tokens, however many windows.
  EXPECT_EQ(data.train.inputs.storage().nbytes(), 20 * sizeof(int64_t));
  const at::Tensor index = at::tensor({5, 0}, at::kLong);
  const at::Tensor rows = network_inputs(data, data.train, index, at::kFloat, at::kCPU);
  EXPECT_EQ(windows(data, rows), (std::vector<std::string>{"fghi", "abcd"}));
  // The same windows, however they lie.
  Split copied = data.train;
  copied.inputs = data.train.inputs.contiguous();
  copied.labels = data.train.labels.contiguous();
  EXPECT_EQ(subset_hash(data.train, index), subset_hash(copied, index));
  EXPECT_TRUE(at::equal(hashed_subset(data.train, 3), hashed_subset(copied, 3)));
}

TEST(Text, CountsCharactersByCodePoint) {
  const Dataset data = text_windows("text",
                                    {"t.txt",
                                     "b\xC3\xA9"
                                     "a—b\na b"},
                                    cut(1, 0, 0.3));
  EXPECT_EQ(data.class_names, (std::vector<std::string>{"\\n", "space", "a", "b", "\xC3\xA9", "—"}));
  EXPECT_EQ(spelled(data, data.train.inputs.flatten()),
            "b\xC3\xA9"
            "a—b");
}

TEST(Text, TakesAnyFileAsBytes) {
  DataOptions options = cut(2, 0, 0.5);
  options.tokens = "bytes";
  const std::string bytes("\xFF\x00\x80\x01\x02\x03", 6);
  const Dataset data = text_windows("text", {"b.bin", bytes}, options);
  EXPECT_EQ(data.classes(), 256);
  EXPECT_TRUE(at::equal(data.train.inputs[0], at::tensor({0xFF, 0x00}, at::kLong)));
  EXPECT_TRUE(at::equal(data.train.labels[0], at::tensor({0x00, 0x80}, at::kLong)));
  EXPECT_EQ(error_of([&] {
              text_windows("text", {"b.bin", bytes}, cut(2, 0, 0.5));
            }),
            "b.bin: byte 0 is no UTF-8; data.tokens = \"bytes\" takes any file");
  EXPECT_THAT(error_of([] {
                text_windows("text", {"cut.txt", "ab\xE2\x80"}, cut(1, 0, 0.3));
              }),
              HasSubstr("cut.txt: byte 2 is no UTF-8"));
}

TEST(Text, ShorterThanAWindowIsRefused) {
  EXPECT_EQ(
      error_of([] { text_windows("text", kAlphabet, cut(16, 0, 0.25)); }),
      "training split of abc.txt: 15 tokens, fewer than a window of data.context = 16 and the one after it");
  EXPECT_THAT(error_of([] { text_windows("text", kAlphabet, cut(8, 0, 0.25)); }),
              HasSubstr("test split of abc.txt: 5 tokens"));
  EXPECT_THAT(error_of([] { text_windows("text", kAlphabet, cut(3, 0, 0.25, 0.2)); }),
              HasSubstr("validation split of abc.txt: 3 tokens"));
}

TEST(Text, ComesFromAFileOfTheUsers) {
  const testing::TemporaryFolder folder;
  DataOptions options = cut(3, 0, 0.25, 0.27);
  options.set = "text";
  options.path = folder / "none.txt";
  EXPECT_THAT(error_of([&] { load_dataset(options); }), HasSubstr("none.txt does not exist"));
  options.path = folder.path();
  EXPECT_THAT(error_of([&] { load_dataset(options); }), HasSubstr("is a folder"));
  options.path = folder / "mine.txt";
  write_file_atomically(options.path, kAlphabet.bytes);
  const Dataset data = load_dataset(options);
  EXPECT_EQ(data.train.size(), 3);
  EXPECT_EQ(data.validation.size(), 1);
  EXPECT_EQ(data.pixels, "user's own");
  EXPECT_TRUE(data.mean.empty());
}

// Nobody's hash but the file's own: 1,176,120 characters, 89 different ones, as data/assets/README.md says.
TEST(Text, OfMobyDickIsWhole) {
  DataOptions options;
  options.set = "moby_dick";
  const Dataset data = load_dataset(options);
  EXPECT_EQ(data.classes(), 89);
  const int64_t test = 117'612, rest = 1'176'120 - test;
  EXPECT_EQ(data.train.size(), (rest - 1) / 64);
  EXPECT_EQ(data.test.size(), (test - 1) / 64);
  EXPECT_EQ(data.pixels, "official");
  options.path = "somewhere";
  EXPECT_THAT(error_of([&] { load_dataset(options); }), HasSubstr("is not read from a path"));
}

TEST(Text, OfTinyShakespeareIsToldFromOthers) {
  const testing::TemporaryFolder folder;
  DataOptions options = cut(3, 0, 0.25);
  options.set = "tinyshakespeare";
  for (const std::string& path : {folder / "input.txt", folder.path()}) {
    write_file_atomically(folder / "input.txt", kAlphabet.bytes);
    options.path = path;
    EXPECT_EQ(load_dataset(options).pixels, kUnverified);
  }
}

}  // namespace
}  // namespace basin
