#include "io/h5.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files.h"
#include "tests/io/samples.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_files.h"

namespace basin {
namespace {

using testing::expect_io_error;
using testing::TemporaryFolder;

TEST(H5, EveryOptionTypeReadsBackAsItWasWrittenAndInOrder) {
  TemporaryFolder folder;
  const h5::Attributes written{{"zeta", true},
                               {"alpha", false},
                               {"int", std::numeric_limits<int64_t>::min()},
                               {"double", 0.1},
                               {"infinite", -std::numeric_limits<double>::infinity()},
                               {"text", std::string("Größe \"x\"\n")},
                               {"empty", std::string()},
                               {"ints", std::vector<int64_t>{1, -2}},
                               {"no ints", std::vector<int64_t>{}},
                               {"doubles", std::vector<double>{0.1, 1e308}},
                               {"no doubles", std::vector<double>{}},
                               {"texts", std::vector<std::string>{"a", "", "ü"}},
                               {"no texts", std::vector<std::string>{}}};
  h5::File file = h5::File::create(folder / "a.h5");
  file.set_attributes(written);
  file.create_group("g").set_attributes(written);
  file.save();
  const h5::File read = h5::File::open(folder / "a.h5");
  EXPECT_EQ(read.attributes(), written);
  EXPECT_EQ(read.group("g").attributes(), written);
}

TEST(H5, AttributesAreReplacedAndTheirTypeIsChecked) {
  TemporaryFolder folder;
  h5::File file = h5::File::create(folder / "a.h5");
  file.set_attribute("x", int64_t{1});
  file.set_attribute("x", std::string("now a text"));
  EXPECT_EQ(file.attribute_as<std::string>("x"), "now a text");
  expect_io_error([&] { file.attribute_as<double>("x"); }, {"a.h5", "\"x\"", "unexpected type"});
  expect_io_error([&] { file.attribute("y"); }, {"a.h5", "no attribute \"y\""});
}

template <class T>
class H5Numbers : public ::testing::Test {};
using NumberTypes = ::testing::Types<double, float, int64_t, int32_t, uint8_t>;
TYPED_TEST_SUITE(H5Numbers, NumberTypes);

TYPED_TEST(H5Numbers, RoundTrip) {
  TemporaryFolder folder;
  const std::vector<TypeParam> extremes{0, 1, std::numeric_limits<TypeParam>::lowest(),
                                        std::numeric_limits<TypeParam>::max(),
                                        std::numeric_limits<TypeParam>::min()};
  std::vector<TypeParam> many(20000);  // three chunks
  std::iota(many.begin(), many.end(), TypeParam{0});
  h5::File file = h5::File::create(folder / "a.h5");
  file.write("extremes", extremes);
  file.write("many", many);
  file.write("none", std::vector<TypeParam>{});
  file.save();
  const h5::File read = h5::File::open(folder / "a.h5");
  EXPECT_EQ(read.dataset("extremes").read<TypeParam>(), extremes);
  EXPECT_EQ(read.dataset("many").read<TypeParam>(), many);
  EXPECT_TRUE(read.dataset("none").read<TypeParam>().empty());
  EXPECT_EQ(read.dataset("many").dtype(), c10::CppTypeToScalarType<TypeParam>::value);
}

TEST(H5, TensorsKeepTypeShapeAndBits) {
  TemporaryFolder folder;
  h5::File file = h5::File::create(folder / "a.h5");
  const at::Tensor image = at::arange(24, at::kFloat).reshape({2, 3, 4}).transpose(0, 2);
  file.write_tensor("image", image);
  file.write_tensor("scalar", at::scalar_tensor(3.5, at::kDouble));
  file.write_tensor("flags", at::tensor({1, 0, 1}).to(at::kBool));
  file.save();
  const h5::File read = h5::File::open(folder / "a.h5");
  EXPECT_TRUE(at::equal(read.dataset("image").read_tensor(), image));
  EXPECT_TRUE(read.dataset("image").read_tensor().is_contiguous());
  EXPECT_EQ(read.dataset("scalar").read_tensor().item<double>(), 3.5);
  EXPECT_EQ(read.dataset("scalar").shape().size(), 0u);
  EXPECT_EQ(read.dataset("flags").dtype(), at::kBool);
  expect_io_error([&] { h5::File::create("b.h5").write_tensor("half", at::zeros({2}, at::kHalf)); },
                  {"Half"});
}

TEST(H5, TextsRoundTrip) {
  TemporaryFolder folder;
  h5::File file = h5::File::create(folder / "a.h5");
  file.write_texts("names", {"a", "", "größer", std::string(100000, 'x')});
  file.write_texts("none", {});
  file.write_text("one", "text\n");
  file.save();
  const h5::File read = h5::File::open(folder / "a.h5");
  EXPECT_THAT(read.dataset("names").read_texts(),
              ::testing::ElementsAre("a", "", "größer", std::string(100000, 'x')));
  EXPECT_TRUE(read.dataset("none").read_texts().empty());
  EXPECT_EQ(read.dataset("one").read_text(), "text\n");
  expect_io_error([&] { read.dataset("names").read<double>(); }, {"a.h5", "/names", "unexpected type"});
  expect_io_error([&] { read.dataset("names").read_text(); }, {"/names", "not one text"});
}

TEST(H5, DimensionScalesAreAttached) {
  TemporaryFolder folder;
  h5::File file = h5::File::create(folder / "a.h5");
  h5::Group group = file.create_group("train");
  h5::DataSet update = group.write("update", std::vector<double>{1, 2});
  h5::DataSet names = group.write_texts("parameter", {"a", "b", "c"});
  update.make_scale("update");
  names.make_scale("parameter");
  const std::vector<double> block{1, 2, 3, 4, 5, 6};
  h5::DataSet ratio = group.write("ratio", at::kDouble, {2, 3}, block.data());
  ratio.attach_scale(0, update);
  ratio.attach_scale(1, names);
  file.save();
  const h5::File read = h5::File::open(folder / "a.h5");
  const h5::DataSet dataset = read.dataset("train/ratio");
  EXPECT_THAT(dataset.scale_paths(0), ::testing::ElementsAre("/train/update"));
  EXPECT_THAT(dataset.scale_paths(1), ::testing::ElementsAre("/train/parameter"));
  EXPECT_TRUE(dataset.attributes().empty()) << "HDF5's own attributes stay hidden";
}

TEST(H5, AListOfScalesOfAnotherTypeIsNone) {
  // HDF5 1.10's own reader would write 32 bytes into a buffer of 16 here.
  TemporaryFolder folder;
  h5::File file = h5::File::create(folder / "a.h5");
  h5::DataSet dataset = file.write("column", std::vector<double>{1, 2});
  dataset.set_attribute("DIMENSION_LIST", std::vector<double>{0, 0, 0, 0});
  file.save();
  EXPECT_TRUE(h5::File::open(folder / "a.h5").dataset("column").scale_paths(0).empty());
}

TEST(SlowH5, AScaleCanHaveMoreUsersThanFitIn64Kilobytes) {
  // The list of a scale's users is one attribute of 16 bytes a user; old-style headers would refuse it at 64 KB.
  TemporaryFolder folder;
  constexpr int kUsers = 4100;
  h5::File file = h5::File::create(folder / "a.h5");
  h5::DataSet run = file.write_texts("run_id", {"a", "b"});
  run.make_scale("run_id");
  for (int i = 0; i < kUsers; ++i) {
    file.write(fmt::format("column{}", i), std::vector<double>{1, 2}).attach_scale(0, run);
  }
  file.save();
  const h5::File read = h5::File::open(folder / "a.h5");
  EXPECT_THAT(read.dataset(fmt::format("column{}", kUsers - 1)).scale_paths(0),
              ::testing::ElementsAre("/run_id"));
}

TEST(H5, NamesWithSlashesMakeGroupsAndNamesKeepTheirOrder) {
  h5::File file = h5::File::create("never-saved.h5");
  file.write("z", std::vector<double>{1});
  file.write("a", std::vector<double>{1});
  file.write("m/n/o", std::vector<double>{1});
  EXPECT_THAT(file.dataset_names(), ::testing::ElementsAre("z", "a"));
  EXPECT_THAT(file.group_names(), ::testing::ElementsAre("m"));
  EXPECT_TRUE(file.has("m/n/o"));
  EXPECT_FALSE(file.has("m/x/o"));
  EXPECT_FALSE(std::filesystem::exists("never-saved.h5"));
}

TEST(H5, EqualContentGivesEqualBytes) {
  const auto build = [] {
    h5::File file = h5::File::create("x.h5");
    file.set_attribute("name", std::string("text"));
    file.create_group("g").write("d", std::vector<double>{1, 2, 3});
    return file.image();
  };
  EXPECT_EQ(build(), build());
}

TEST(H5, FailuresAreOneLineWithFileAndObject) {
  TemporaryFolder folder;
  expect_io_error([&] { h5::File::open(folder / "missing.h5"); }, {"missing.h5", "No such file"});
  testing::write_bytes(folder / "text.h5", "not HDF5 at all");
  expect_io_error([&] { h5::File::open(folder / "text.h5"); }, {"text.h5", "not an HDF5 file", "15 bytes"});
  testing::write_bytes(folder / "empty.h5", "");
  expect_io_error([&] { h5::File::open(folder / "empty.h5"); }, {"empty.h5", "0 bytes"});
  expect_io_error([&] { h5::File::open(folder.path()); }, {folder.path()});
  h5::File file = h5::File::create(folder / "a.h5");
  file.write("d", std::vector<double>{1});
  expect_io_error([&] { file.write("d", std::vector<double>{1}); }, {"a.h5", "cannot create /d", "exists"});
  expect_io_error([&] { file.dataset("e"); }, {"a.h5", "no dataset /e"});
  expect_io_error([&] { file.group("g/h"); }, {"a.h5", "no group /g/h"});
  expect_io_error([&] { file.group("d"); }, {"a.h5", "/d"});
}

TEST(H5, WhereNoMoreFilesMayBeOpenNothingIsSaidOfTheFile) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.h5";
  h5::File::create(path).save();
  const auto in_child = [&] {
    const rlimit few{3, 3};
    setrlimit(RLIMIT_NOFILE, &few);
    const std::string said = testing::message_of<IoError>([&] { h5::File::open_unchecked(path); });
    _exit(said == path + ": Too many open files" ? 0 : 1);
  };
  EXPECT_EXIT(in_child(), ::testing::ExitedWithCode(0), "");
}

TEST(H5, AFlippedBitInDataIsNoticed) {
  TemporaryFolder folder;
  std::vector<double> noise(4096);  // incompressible enough that the chunk fills most of the file
  for (size_t i = 0; i < noise.size(); ++i) noise[i] = std::sin(static_cast<double>(i * i));
  h5::File file = h5::File::create(folder / "a.h5");
  file.write("d", noise);
  std::string bytes = testing::without_seal(file.image());  // else that would see it first
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  testing::write_bytes(folder / "b.h5", bytes);
  expect_io_error([&] { h5::File::open(folder / "b.h5"); }, {"b.h5", "cannot read /d", "etcher32"});
  const h5::File read = h5::File::open_unchecked(folder / "b.h5");
  expect_io_error([&] { read.dataset("d").read<double>(); }, {"b.h5", "cannot read /d", "etcher32"});
}

}  // namespace
}  // namespace basin
