#include "runs/script_subject.h"

#include "core/files.h"
#include "data/load.h"
#include "data/registry.h"
#include "io/checkpoint.h"
#include "runs/checkpoints.h"
#include "runs/folder.h"
#include "runs/parts.h"
#include "trainers/data_identity.h"
#include "trainers/trainer.h"

namespace basin {
namespace {

bool is_set_without_path(const std::string& name) {
  const auto& sets = dataset_registry();
  return std::any_of(sets.begin(), sets.end(),
                     [&](const DatasetEntry& entry) { return entry.name == name && !entry.needs_path; });
}

RunOptions options_of(const ScriptSubject& subject) {
  RunOptions options;
  OptionTable table = options.table();
  table.set("model", std::string("torchscript"), "--script");
  table.set("torchscript.file", subject.script, "--script");
  table.set("loss", subject.loss, "--loss");
  const bool by_name = is_set_without_path(subject.data);
  table.set("data.set", by_name ? subject.data : std::string("arrays"), "--data");
  if (!by_name) table.set("data.path", subject.data, "--data");
  if (subject.classes > 0) table.set("data.classes", subject.classes, "--classes");
  return options;
}

Checkpoint untrained(const RunOptions& options) {
  const Dataset data = load_dataset(options.data);
  const auto model = build_model(options, data, at::kFloat, at::kCPU);
  Checkpoint checkpoint;
  checkpoint.run_id = options.run_id();
  checkpoint.config_id = options.config_id();
  checkpoint.config = options.resolved();
  checkpoint.label = "end";
  checkpoint.data = data_attributes(data);
  store_model(*model, checkpoint);
  return checkpoint;
}

}  // namespace

std::string write_script_subject(const ScriptSubject& subject, const std::string& out) {
  const RunOptions options = options_of(subject);
  const Checkpoint checkpoint = untrained(options);
  const std::string folder = run_folder(out, options);
  const std::string path = checkpoint_path(folder, checkpoint.label);
  // The run's name says which network and set were asked for, not what lay there.
  if (std::filesystem::exists(path)) check_same_data(path, read_checkpoint(path).data, checkpoint.data);
  make_folders(folder + "/ckpt");
  write_checkpoint(path, checkpoint);
  return folder;
}

}  // namespace basin
