#include <gmock/gmock.h>

#include <cstdlib>

#include "core/files.h"
#include "io/checkpoint.h"
#include "io/probe_file.h"
#include "io/run_file.h"
#include "io/schema.h"
#include "io/status_file.h"
#include "tests/io/samples.h"
#include "tests/support/environment.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_files.h"

namespace basin {
namespace {

using testing::expect_io_error;
using testing::expect_same;
using testing::TemporaryFolder;
using testing::write_bytes;

// ---- run.h5

TEST(RunFile, RoundTrips) {
  TemporaryFolder folder;
  const RunRecord run = testing::sample_run();
  write_run_file(folder / "run.h5", run);
  const RunRecord read = read_run_file(folder / "run.h5");
  expect_same(run, read);
  EXPECT_EQ(read.updated_utc, run.updated_utc);
  EXPECT_EQ(read.events[1].seconds, run.events[1].seconds);
  EXPECT_EQ(read.events[1].time, run.events[1].time);
}

TEST(RunFile, ARunThatHasJustBegunRoundTrips) {
  TemporaryFolder folder;
  RunRecord run = testing::sample_run();
  for (auto& [name, table] : run.tables) table.rows.clear();
  run.outcomes.clear();
  run.summary.clear();
  run.events.clear();
  run.header.parameters.clear();
  write_run_file(folder / "run.h5", run);
  expect_same(run, read_run_file(folder / "run.h5"));
}

TEST(RunFile, OneParameterHasAnAxisOfItsOwnToo) {
  TemporaryFolder folder;
  RunRecord run = testing::sample_run();
  Table& layers = run.tables["layers"];
  layers.columns.resize(2);
  layers.columns[1].width = 1;
  layers.columns[1].labels = {"w"};
  layers.rows = {1, 0.5, 2, 0.25};
  write_run_file(folder / "run.h5", run);
  expect_same(run, read_run_file(folder / "run.h5"));
  const h5::File file = h5::File::open(folder / "run.h5");
  EXPECT_THAT(file.dataset("layers/weight_norm").shape(), ::testing::ElementsAre(2, 1));
}

TEST(RunFile, EveryDatasetSaysWhatItIsAndHasItsScales) {
  TemporaryFolder folder;
  write_run_file(folder / "run.h5", testing::sample_run());
  const h5::File file = h5::File::open(folder / "run.h5");
  int datasets = 0;
  const std::function<void(const h5::Group&)> visit = [&](const h5::Group& group) {
    for (const std::string& name : group.dataset_names()) {
      const h5::DataSet dataset = group.dataset(name);
      ++datasets;
      for (const char* attribute : {"units", "long_name", "definition"}) {
        EXPECT_TRUE(dataset.has_attribute(attribute)) << dataset.path() << " " << attribute;
      }
      if (dataset.has_attribute("CLASS")) continue;  // a scale itself
      for (size_t axis = 0; axis < dataset.shape().size(); ++axis) {
        EXPECT_EQ(dataset.scale_paths(static_cast<int64_t>(axis)).size(), 1u)
            << dataset.path() << " axis " << axis;
      }
    }
    for (const std::string& name : group.group_names()) visit(group.group(name));
  };
  visit(file);
  EXPECT_EQ(datasets, 1 + 6 + 2 + 4 + 3 + 6 + 5);  // toml, params, train, layers, eval, outcomes, log
  EXPECT_THAT(file.dataset("layers/trust_ratio").scale_paths(1), ::testing::ElementsAre("/layers/parameter"));
  EXPECT_EQ(file.group("train").attribute_as<std::string>("signal"), "loss");
  EXPECT_EQ(file.attribute_as<std::string>("default"), "eval");
}

TEST(RunFile, ReplacesTheOldFileAndIgnoresALeftOverTemporary) {
  TemporaryFolder folder;
  RunRecord run = testing::sample_run();
  write_run_file(folder / "run.h5", run);
  write_bytes(folder / "run.h5.tmp", "half a file of a killed process");
  expect_same(run, read_run_file(folder / "run.h5"));
  run.status = RunState::diverged;
  write_run_file(folder / "run.h5", run);
  EXPECT_EQ(read_run_file(folder / "run.h5").status, RunState::diverged);
  EXPECT_FALSE(std::filesystem::exists(folder / "run.h5.tmp"));
}

// ---- every schema: foreign, newer, truncated

struct Kind {
  const char* schema;
  std::function<void(const std::string&)> write, read;
};

// apps writes the real one; what matters here is the schema.
void write_small_sweep(const std::string& path) {
  h5::File file = create_schema_file(path, kSweepSchema);
  h5::Group runs = file.create_group("runs");
  runs.write_texts("run_id", {"0123456789ab", "ba9876543210"});
  runs.write("test_acc", std::vector<double>(2000, 0.5));
  file.save();
}

std::vector<Kind> kinds() {
  return {{kRunSchema, [](const std::string& p) { write_run_file(p, testing::sample_run()); },
           [](const std::string& p) { read_run_file(p); }},
          {kCheckpointSchema, [](const std::string& p) { write_checkpoint(p, testing::sample_checkpoint()); },
           [](const std::string& p) { read_checkpoint(p); }},
          {kProbeSchema, [](const std::string& p) { write_probe_file(p, testing::sample_probe()); },
           [](const std::string& p) { read_probe_file(p); }},
          {kSweepSchema, write_small_sweep, [](const std::string& p) {
             open_schema_file(p, kSweepSchema).dataset("runs/run_id").read_texts();
           }}};
}

TEST(Schema, ForeignFilesAreRefusedInOneLine) {
  TemporaryFolder folder;
  const std::string path = folder / "file.h5";
  for (const Kind& kind : kinds()) {
    h5::File::create(path).save();
    expect_io_error([&] { kind.read(path); }, {path, "not a Basin file", "schema_name"});
    h5::File other = h5::File::create(path);
    other.set_attribute("schema_name", std::string("keras"));
    other.set_attribute("schema_version", std::string("1.0.0"));
    other.save();
    expect_io_error([&] { kind.read(path); }, {path, "not a Basin file", "keras"});
    create_schema_file(path, "basin/other").save();
    expect_io_error([&] { kind.read(path); }, {path, "basin/other", kind.schema});
    create_schema_file(path, kind.schema).save();  // the right name and nothing in it
    expect_io_error([&] { kind.read(path); }, {path});
    expect_io_error([&] { kind.read(folder / "missing.h5"); }, {"missing.h5", "No such file"});
  }
}

TEST(Schema, AnotherMajorVersionIsRefusedAndAnotherMinorOneIsRead) {
  TemporaryFolder folder;
  const std::string path = folder / "file.h5";
  for (const Kind& kind : kinds()) {
    for (const std::string version : {"2.0.0", "0.9.0", "10.0.0"}) {
      h5::File file = create_schema_file(path, kind.schema);
      file.set_attribute("schema_version", version);
      file.save();
      expect_io_error([&] { kind.read(path); }, {path, "schema version " + version, "reads 1.x"});
    }
  }
  for (const std::string version : {"1.0.0", "1.7.2"}) {
    h5::File file = create_schema_file(path, kRunSchema);
    file.set_attribute("schema_version", version);
    EXPECT_EQ(schema_of(file), kRunSchema) << version;
  }
}

TEST(Schema, TruncatedFilesAreRefusedInOneLineWhateverTheirSize) {
  TemporaryFolder folder;
  for (const Kind& kind : kinds()) {
    kind.write(folder / "whole.h5");
    const std::string bytes = read_file(folder / "whole.h5");
    std::vector<size_t> sizes{0, 1, 7, 8, 47, 96, 100, bytes.size() / 2, bytes.size() - 1};
    for (size_t size = 500; size < bytes.size(); size += bytes.size() / 37) sizes.push_back(size);
    for (const size_t size : sizes) {
      write_bytes(folder / "cut.h5", bytes.substr(0, size));
      expect_io_error([&] { kind.read(folder / "cut.h5"); }, {folder / "cut.h5", "truncated"});
    }
  }
}

// ---- checkpoints

TEST(CheckpointFile, RoundTripsBitForBit) {
  TemporaryFolder folder;
  const Checkpoint written = testing::sample_checkpoint();
  write_checkpoint(folder / "end.h5", written);
  const Checkpoint read = read_checkpoint(folder / "end.h5");
  EXPECT_EQ(read.run_id, written.run_id);
  EXPECT_EQ(read.config_id, written.config_id);
  EXPECT_EQ(read.config, written.config);
  EXPECT_EQ(read.label, written.label);
  EXPECT_EQ(read.update, written.update);
  EXPECT_EQ(read.journal_offset, written.journal_offset);
  EXPECT_EQ(read.progress, written.progress);
  EXPECT_EQ(read.data, written.data);
  const auto same_bits = [](const at::Tensor& a, const at::Tensor& b) {
    return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() &&
           std::memcmp(a.contiguous().data_ptr(), b.contiguous().data_ptr(), a.nbytes()) == 0;
  };
  ASSERT_EQ(read.parameters.size(), written.parameters.size());
  for (size_t i = 0; i < read.parameters.size(); ++i) {
    EXPECT_EQ(read.parameters[i].name, written.parameters[i].name);
    EXPECT_EQ(read.parameters[i].layer, written.parameters[i].layer);
    EXPECT_EQ(read.parameters[i].kind, written.parameters[i].kind);
    EXPECT_TRUE(same_bits(read.parameters[i].tensor, written.parameters[i].tensor));
    EXPECT_TRUE(read.parameters[i].tensor.is_contiguous());
  }
  const auto expect_tensors = [&](const NamedTensors& a, const NamedTensors& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].first, b[i].first) << "names and their order";
      EXPECT_TRUE(same_bits(a[i].second, b[i].second)) << a[i].first;
    }
  };
  expect_tensors(read.buffers, written.buffers);
  expect_tensors(read.optimizer, written.optimizer);
  expect_tensors(read.generators, written.generators);
  ASSERT_EQ(read.states.size(), 3U);
  for (const auto& [name, tensors] : written.states) expect_tensors(read.state(name), tensors);
}

TEST(CheckpointFile, HasNoCopiesOfTheWeightsWhereNoneAreKept) {
  TemporaryFolder folder;
  Checkpoint written = testing::sample_checkpoint();
  written.states.clear();
  write_checkpoint(folder / "end.h5", written);
  for (const char* copy : {"average", "slow_weights"})
    EXPECT_FALSE(h5::File::open(folder / "end.h5").has(copy));
  EXPECT_TRUE(read_checkpoint(folder / "end.h5").states.empty());
}

TEST(CheckpointFile, AManyThousandParameterTensorSurvivesAndItsDamageIsNoticed) {
  TemporaryFolder folder;
  Checkpoint checkpoint = testing::sample_checkpoint();
  const at::Tensor weight = at::rand({700, 1000});  // several chunks
  checkpoint.parameters[0].tensor = weight;
  write_checkpoint(folder / "end.h5", checkpoint);
  EXPECT_TRUE(at::equal(read_checkpoint(folder / "end.h5").parameters[0].tensor, weight));
  std::string bytes = read_file(folder / "end.h5");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 16);
  write_bytes(folder / "damaged.h5", testing::without_seal(bytes));
  expect_io_error([&] { read_checkpoint(folder / "damaged.h5"); }, {"damaged.h5", "/model/conv1.weight"});
}

TEST(CheckpointFile, AnUnknownKindIsRefused) {
  TemporaryFolder folder;
  write_checkpoint(folder / "end.h5", testing::sample_checkpoint());
  std::string bytes = testing::without_seal(read_file(folder / "end.h5"));
  // Strings lie in HDF5's global heap, which has no checksum: without a seal this is what a damaged one looks like.
  const size_t at = bytes.find("norm_weight");
  ASSERT_NE(at, std::string::npos);
  bytes[at] = 'x';
  write_bytes(folder / "odd.h5", bytes);
  expect_io_error([&] { read_checkpoint(folder / "odd.h5"); },
                  {"odd.h5", "/model/alpha.first", "xorm_weight"});
}

// ---- probe files

TEST(ProbeFile, RoundTrips) {
  TemporaryFolder folder;
  const ProbeRecord written = testing::sample_probe();
  write_probe_file(folder / "end.top_eigenvalues.h5", written);
  const ProbeRecord read = read_probe_file(folder / "end.top_eigenvalues.h5");
  EXPECT_EQ(read.run_id, written.run_id);
  EXPECT_EQ(read.probe, written.probe);
  EXPECT_EQ(read.checkpoint, written.checkpoint);
  EXPECT_EQ(read.status, written.status);
  EXPECT_EQ(read.message, written.message);
  EXPECT_EQ(read.attributes, written.attributes);
  EXPECT_EQ(read.provenance, written.provenance);
  ASSERT_EQ(read.quantities.size(), written.quantities.size());
  for (size_t i = 0; i < read.quantities.size(); ++i) {
    const Quantity &a = read.quantities[i], &b = written.quantities[i];
    EXPECT_EQ(std::tie(a.name, a.definition, a.units, a.long_name, a.uncertainty_kind, a.status),
              std::tie(b.name, b.definition, b.units, b.long_name, b.uncertainty_kind, b.status));
    expect_same(a.value, b.value);
    expect_same(a.uncertainty, b.uncertainty);
    expect_same(a.ci_low, b.ci_low);
    expect_same(a.ci_high, b.ci_high);
    EXPECT_EQ(a.entry_status, b.entry_status);
    EXPECT_EQ(a.is_vector, b.is_vector);
  }
}

TEST(ProbeFile, RefusesAttributesThatWouldHideItsOwn) {
  TemporaryFolder folder;
  ProbeRecord probe = testing::sample_probe();
  probe.attributes.emplace_back("status", std::string("mine"));
  EXPECT_THROW(write_probe_file(folder / "p.h5", probe), c10::Error);
}

// ---- status.json

TEST(StatusFile, RoundTripsWithEveryKindOfCharacter) {
  TemporaryFolder folder;
  const RunStatus written{.run_id = "0123456789ab",
                          .message = "a \"b\" \\ c\n\t\x01 größer 🙂 /",
                          .status = RunState::failed,
                          .update = 7,
                          .done = 0.1,
                          .loss = INFINITY,
                          .pid = 4711,
                          .host = "höst",
                          .updated_utc = "now"};
  write_status(folder / "status.json", written);
  const RunStatus read = read_status(folder / "status.json");
  EXPECT_EQ(read.run_id, written.run_id);
  EXPECT_EQ(read.status, written.status);
  EXPECT_EQ(read.message, written.message);
  EXPECT_EQ(read.update, written.update);
  EXPECT_EQ(read.done, written.done);
  EXPECT_TRUE(std::isnan(read.images_per_second));
  EXPECT_TRUE(std::isnan(read.loss)) << "JSON has neither NaN nor infinity: both become null";
  EXPECT_EQ(read.pid, written.pid);
  EXPECT_EQ(read.host, written.host);
  EXPECT_EQ(read.updated_utc, written.updated_utc);
}

TEST(StatusFile, ReadsWhatPythonWritesAndIgnoresUnknownKeys) {
  TemporaryFolder folder;
  write_bytes(
      folder / "status.json",
      R"({"new": null, "also": true, "run_id": "\u0041\u00fc\u20ac", "status": "running", "message": "",
                  "update": 1e2, "done": -0.5, "images_per_second": 3, "loss": null, "pid": 1, "host": "h", "updated_utc": "t"})");
  const RunStatus read = read_status(folder / "status.json");
  EXPECT_EQ(read.run_id, "Aü€");
  EXPECT_EQ(read.update, 100);
  EXPECT_EQ(read.done, -0.5);
}

// Python's json writes what lies beyond 16 bits as two escapes.
TEST(StatusFile, ReadsSurrogatePairs) {
  TemporaryFolder folder;
  const auto message_of = [&](const std::string& escaped) {
    RunStatus status;
    status.message = "HERE";
    write_status(folder / "status.json", status);
    std::string text = read_file(folder / "status.json");
    write_bytes(folder / "status.json", text.replace(text.find("HERE"), 4, escaped));
    return read_status(folder / "status.json").message;
  };
  EXPECT_EQ(message_of(R"(\ud83d\ude42 \u20ac)"), "\xF0\x9F\x99\x82 \xE2\x82\xAC");
  expect_io_error([&] { message_of(R"(half a pair: \ud83d)"); }, {"status.json", "malformed at byte"});
}

// A file's name may be any bytes; JSON has UTF-8 alone.
TEST(StatusFile, BytesThatAreNoTextDontMakeTheFileUnreadable) {
  TemporaryFolder folder;
  RunStatus status;
  status.message = "cannot read /data/\xFF.bin";
  write_status(folder / "status.json", status);
  EXPECT_EQ(read_status(folder / "status.json").message, "cannot read /data/\xEF\xBF\xBD.bin");
}

TEST(StatusFile, MalformedOnesAreRefusedInOneLine) {
  TemporaryFolder folder;
  const std::string path = folder / "status.json";
  write_status(path, {});
  const std::string whole = read_file(path);
  for (size_t size = 0; size + 2 < whole.size(); size += 3) {
    write_bytes(path, whole.substr(0, size));
    expect_io_error([&] { read_status(path); }, {path, "malformed at byte"});
  }
  write_bytes(path, R"({"run_id": 3})");
  expect_io_error([&] { read_status(path); }, {path, "\"run_id\" is missing or not a string"});
  write_bytes(path, "[1, 2]");
  expect_io_error([&] { read_status(path); }, {path, "malformed at byte 0"});
  expect_io_error([&] { read_status(folder / "missing.json"); }, {"missing.json"});
}

TEST(StatusFile, FinalWords) {
  for (const char* word : {"finished", "target_not_reached", "diverged"})
    EXPECT_TRUE(is_final(parse_run_state(word, "test"))) << word;
  for (const char* word : {"queued", "running", "interrupted", "failed"})
    EXPECT_FALSE(is_final(parse_run_state(word, "test"))) << word;
}

// An enum inside, a word in the file: one that nobody knows is refused with file and word.
TEST(Statuses, UnknownWordsInFilesAreRefused) {
  TemporaryFolder folder;
  const auto misspell = [&](const std::string& file, const std::string& word) {
    std::string bytes = read_file(folder / file);
    if (file.ends_with(".h5")) bytes = testing::without_seal(bytes);
    const size_t at = bytes.find(word);
    ASSERT_NE(at, std::string::npos) << file;
    bytes[at] = 'x';
    write_bytes(folder / file, bytes);
  };
  write_status(folder / "status.json", {});
  misspell("status.json", "queued");
  expect_io_error([&] { read_status(folder / "status.json"); },
                  {"status.json", "unknown run status \"xueued\"", "queued, running"});
  write_run_file(folder / "run.h5", testing::sample_run());
  misspell("run.h5", "finished");
  expect_io_error([&] { read_run_file(folder / "run.h5"); }, {"run.h5", "unknown run status \"xinished\""});
  write_probe_file(folder / "probe.h5", testing::sample_probe());
  misspell("probe.h5", "not_converged");
  expect_io_error([&] { read_probe_file(folder / "probe.h5"); },
                  {"probe.h5", "unknown probe status \"xot_converged\"", "ok, not_resolved"});
}

// ---- an independent reader

TEST(Files, H5pyReadsThem) {
  const std::string root = testing::source_folder();
  const std::string python = root + "/.venv/bin/python";
  if (!std::filesystem::exists(python)) GTEST_SKIP() << "no " << python;
  TemporaryFolder folder;
  write_run_file(folder / "run.h5", testing::sample_run());
  write_checkpoint(folder / "end.h5", testing::sample_checkpoint());
  write_probe_file(folder / "probe.h5", testing::sample_probe());
  write_status(folder / "status.json", {.run_id = "id",
                                        .message = "a \"b\" \\ \n\x01 größer",
                                        .status = RunState::failed,
                                        .update = 7,
                                        .done = 0.1,
                                        .loss = 2.5,
                                        .pid = 1,
                                        .host = "h",
                                        .updated_utc = "t"});
  const std::string command = python + " " + root + "/tests/io/check_with_h5py.py " + folder.path();
  EXPECT_EQ(std::system(command.c_str()), 0);  // NOLINT(bugprone-command-processor): words of ctest and ours
}

}  // namespace
}  // namespace basin
