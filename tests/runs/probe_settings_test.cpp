#include "runs/probe_settings.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "runs/probes_done.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_files.h"

namespace basin {
namespace {

namespace fs = std::filesystem;

std::string fingerprint(const std::string& probe, int64_t examples, const std::string& dtype,
                        const std::string& option = "") {
  RunOptions options;
  if (!option.empty()) options.table().set_from_text(option, "test");
  return settings_fingerprint(chosen_settings(probe, examples, dtype, options.probe_options));
}

TEST(ProbeSettings, FingerprintTellsChosenSettingsApart) {
  const std::string base = fingerprint("top_eigenvalues", 1000, "float32");
  EXPECT_EQ(base.size(), 8u);
  EXPECT_EQ(base,
            fingerprint("top_eigenvalues", 1000, "float32", "noise_scale.group_size=5"));  // another probe's
  EXPECT_NE(base, fingerprint("top_eigenvalues", 5000, "float32"));
  EXPECT_NE(base, fingerprint("top_eigenvalues", 1000, "float64"));
  EXPECT_NE(base, fingerprint("top_eigenvalues", 1000, "float32", "top_eigenvalues.count=3"));
}

// As the program named them before (at f1eed98): in the names of files, and in files.
TEST(ProbeSettings, FingerprintsAreThoseThatTheyWere) {
  EXPECT_EQ(fingerprint("top_eigenvalues", 256, "float32"), "68dcc171");
  EXPECT_EQ(fingerprint("noise_scale", 256, "float32"), "254dbeb4");
  EXPECT_EQ(fingerprint("noise_scale", 64, "float32"), "375f68ca");
  EXPECT_EQ(fingerprint("curvature", 60, "float64", "curvature.compat=pyhessian"), "7aee3a5e");
  EXPECT_EQ(fingerprint("margins", 60, "float64"), "b134d1fc");
}

TEST(ProbeSettings, PathIsShortForTheStudysOwn) {
  const testing::TemporaryFolder run;
  fs::create_directories(run / "probes");
  const std::string own = run / "probes/loss-1.5.noise_scale.h5",
                    other = run / "probes/loss-1.5.noise_scale.0badf00d.h5";
  EXPECT_EQ(probe_path(run.path(), "loss-1.5", "noise_scale", "12345678", "12345678"), own);
  EXPECT_EQ(probe_path(run.path(), "loss-1.5", "noise_scale", "0badf00d", "12345678"), other);
  // Without a study the first that comes has the short name.
  EXPECT_EQ(probe_path(run.path(), "loss-1.5", "noise_scale", "0badf00d", std::nullopt), own);
  ProbeRecord record;
  record.probe = "noise_scale";
  record.checkpoint = "loss-1.5";
  record.status = ProbeStatus::ok;
  record.attributes = {{"settings", std::string("12345678")}};
  write_probe_file(own, record);
  EXPECT_EQ(probe_path(run.path(), "loss-1.5", "noise_scale", "12345678", std::nullopt), own);
  EXPECT_EQ(probe_path(run.path(), "loss-1.5", "noise_scale", "0badf00d", std::nullopt), other);
  EXPECT_TRUE(is_studys_own(own, record));
  EXPECT_FALSE(is_studys_own(other, record));
}

TEST(ProbeSettings, ContentHashIsOfParametersAndStatistics) {
  Checkpoint checkpoint;
  ParameterInfo parameter;
  parameter.name = "fc.weight";
  parameter.tensor = at::arange(6, at::kFloat).reshape({2, 3});
  checkpoint.parameters = {parameter};
  checkpoint.buffers = {{"norm.mean", at::zeros({3})}};
  const std::string before = content_hash(checkpoint);
  checkpoint.update = 7;  // not content
  EXPECT_EQ(content_hash(checkpoint), before);
  checkpoint.buffers[0].second[1] = 1;
  EXPECT_NE(content_hash(checkpoint), before);
  checkpoint.buffers[0].second[1] = 0;
  checkpoint.parameters[0].tensor = parameter.tensor.reshape({3, 2});
  EXPECT_NE(content_hash(checkpoint), before);
}

TEST(ProbeSettings, DoneIsNotDoneOnceACheckpointIsNewer) {
  const testing::TemporaryFolder run;
  fs::create_directories(run / "ckpt");
  fs::create_directories(run / "probes");
  testing::write_text(run / "ckpt/end.h5", "");
  RunOptions options;
  options.probes.run = {"noise_scale"};
  note_probes_done(run.path(), options, {});
  EXPECT_TRUE(probes_done(run.path(), options));
  testing::write_text(run / "ckpt/latest.h5", "");
  const auto done = fs::last_write_time(run / "probes/done");
  fs::last_write_time(run / "ckpt/latest.h5", done + std::chrono::seconds(5));  // no probe looks at it
  EXPECT_TRUE(probes_done(run.path(), options));
  fs::last_write_time(run / "ckpt/end.h5", done + std::chrono::seconds(5));
  EXPECT_FALSE(probes_done(run.path(), options));
}

}  // namespace
}  // namespace basin
