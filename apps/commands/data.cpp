#include <unistd.h>
#include <CLI/CLI.hpp>

#include "apps/arguments.h"
#include "apps/output/json_output.h"
#include "apps/subcommands.h"
#include "core/error.h"
#include "core/files.h"
#include "core/interrupt.h"
#include "core/messages.h"
#include "data/import.h"
#include "data/load.h"
#include "data/registry.h"

namespace basin {
namespace {

struct DataArguments {
  DataOptions options;
  std::string out;
  bool json = false;
};

/// Labels of each class.
at::Tensor class_counts(const Dataset& data, const Split& split) {
  if (split.size() == 0) return at::zeros({data.classes()}, at::kLong);
  return at::bincount(split.labels.flatten(), {}, data.classes());
}

void print_split(const Dataset& data, const char* name, const Split& split) {
  if (split.size() == 0) return;
  fmt::print("{:<11} {} {} of {}, ", name, split.size(), split.has_pictures() ? "images" : "examples",
             fmt::join(split.inputs.sizes().slice(1), "x"));
  if (data.classes() == 0) {
    fmt::print("{} numbers each to predict\n", data.outputs());
    return;
  }
  const at::Tensor counts = class_counts(data, split);
  fmt::print("{} to {} {}per class\n", counts.min().item<int64_t>(), counts.max().item<int64_t>(),
             split.labels.dim() > 1 ? "labels " : "");
}

void print_class_balance(const Dataset& data) {
  if (data.classes() == 0) return;
  fmt::print("\n{:<16} {:>7} {:>10} {:>7}\n", "class", "train", "validation", "test");
  std::vector<at::Tensor> counts;
  for (const Split* split : {&data.train, &data.validation, &data.test})
    counts.push_back(class_counts(data, *split));
  for (int64_t c = 0; c < data.classes(); ++c)
    fmt::print("{:<16} {:>7} {:>10} {:>7}\n", data.class_names[static_cast<size_t>(c)],
               counts[0][c].item<int64_t>(), counts[1][c].item<int64_t>(), counts[2][c].item<int64_t>());
}

Json json_of(const Dataset& data, const Split& split) {
  const at::Tensor counts = data.classes() > 0 ? class_counts(data, split) : at::zeros({0}, at::kLong);
  return {{"images", split.size()},
          {"shape", split.size() ? split.inputs.sizes().slice(1).vec() : std::vector<int64_t>()},
          {"per_class",
           std::vector<int64_t>(counts.data_ptr<int64_t>(), counts.data_ptr<int64_t>() + counts.numel())}};
}

Json json_of(const Dataset& data) {
  return {{"set", data.name},
          {"pixels", data.pixels},
          {"sha256", data.sha256},
          {"split_hash", data.split_hash},
          {"class_names", data.class_names},
          {"mean", data.mean},
          {"std", data.std},
          {"splits",
           {{"train", json_of(data, data.train)},
            {"validation", json_of(data, data.validation)},
            {"test", json_of(data, data.test)}}}};
}

void print_description(const Dataset& data) {
  fmt::print("{:<11} {}\n", "set", data.name);
  fmt::print("{:<11} {}\n", "pixels", data.pixels);
  print_split(data, "train", data.train);
  print_split(data, "validation", data.validation);
  print_split(data, "test", data.test);
  if (!data.mean.empty()) {
    fmt::print("{:<11} {:.6f}  ({}by channel, over train)\n", "mean", fmt::join(data.mean, " "),
               data.train.has_pictures() ? "of pixel/255, " : "");
    fmt::print("{:<11} {:.6f}\n", "std", fmt::join(data.std, " "));
  }
  fmt::print("{:<11} {}\n", "sha256", data.sha256);
  fmt::print("{:<11} {}\n", "split_hash", data.split_hash);
  print_class_balance(data);
}

int describe(const DataArguments& arguments) {
  const Dataset data = load_dataset(arguments.options);
  if (arguments.json)
    print_json("data-describe", json_of(data));
  else
    print_description(data);
  return 0;
}

int check(const DataArguments& arguments) {
  const Dataset data = load_dataset(arguments.options);
  if (data.pixels == kUnverified)
    throw DataError(fmt::format("{}: holds complete records of {}, but its SHA-256 {} matches no known copy",
                                arguments.options.path, data.name, data.sha256));
  if (arguments.json) {
    print_json("data-check", json_of(data));
    return 0;
  }
  fmt::print("{}: {} train and {} test images, pixels {}, sha256 {}\n", data.name, data.train.size(),
             data.test.size(), data.pixels, data.sha256);
  return 0;
}

int import(const DataArguments& arguments) {
  const std::string &set = arguments.options.set, &out = arguments.out;
  const Imported imported = import_dataset(manifest_of(set), arguments.options.path, out);
  if (arguments.json)
    print_json("data-import", {{"set", set},
                               {"folder", out},
                               {"files", imported.files},
                               {"pixels", imported.pixels},
                               {"sha256", imported.sha256}});
  else
    fmt::print("{}: {} in {}, pixels {}, sha256 {}\n", set, counted(imported.files, "file"), out,
               imported.pixels, imported.sha256);
  if (imported.pixels == kUnverified) {
    warn(fmt::format("the pixels of {} are unverified: sha256 {} matches no known copy of {}", out,
                     imported.sha256, set));
  }
  return 0;
}

/// Lies next to the target folder, so on the same disk; removed whatever happens.
struct TemporaryFile {
  std::string path;
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

int get(DataArguments arguments) {
  const Manifest& manifest = manifest_of(arguments.options.set);
  const std::string& out = arguments.out;
  require_new_folder(out);
  if (const std::string parent = std::filesystem::absolute(out).parent_path().string(); !parent.empty())
    make_folders(parent);
  install_interrupt_handlers();  // so that no archive is left behind
  const TemporaryFile archive{fmt::format("{}.download-{}.tar.gz", out, ::getpid())};
  fmt::print(stderr, "fetching {}\n", manifest.archive_url);
  try {
    fetch_archive(manifest.archive_url, manifest.archive_sha256, archive.path);
  } catch (const DataError&) {  // Ctrl-C ends the fetching program too
    throw_if_interrupted();
    throw;
  }
  throw_if_interrupted();
  arguments.options.path = archive.path;
  return import(arguments);
}

std::vector<std::string> names_where(bool (DatasetEntry::*holds)() const) {
  std::vector<std::string> names;
  for (const DatasetEntry& entry : dataset_registry())
    if ((entry.*holds)()) names.push_back(entry.name);
  return names;
}

}  // namespace

void add_data(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<DataArguments>();
  DataOptions& options = arguments->options;
  CLI::App* data = app.add_subcommand("data", "Describe, check, import or fetch a data set");
  data->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, const std::vector<std::string>& sets) {
    CLI::App* command = data->add_subcommand(name, help);
    take_one_of(*command->add_option("set", options.set, "data set")->required(), "data set", sets);
    add_json_flag(*command, arguments->json);
    return command;
  };
  const std::vector<std::string> all = names_of(dataset_registry());

  CLI::App* describing = add("describe", "Print counts, class balance, mean and std, SHA-256", all);
  describing->add_option("--path", options.path, "folder or official archive");
  describing
      ->add_option("--validation", options.validation,
                   "share of the training set held out, by a hash of the image bytes")
      ->check(CLI::Range(0.0, 0.999));
  describing->callback([arguments, &action] { action = [arguments] { return describe(*arguments); }; });

  CLI::App* checking = add("check", "Compare a data set with its manifest: counts, labels, SHA-256", all);
  checking->add_option("--path", options.path, "folder or official archive");
  checking->callback([arguments, &action] { action = [arguments] { return check(*arguments); }; });

  CLI::App* importing = add("import", "Check a data set and write its files into a new folder",
                            names_where(&DatasetEntry::can_be_imported));
  importing->add_option("--path", options.path, "folder or official archive")->required();
  importing->add_option("--out", arguments->out, "folder to make")->required();
  importing->callback([arguments, &action] { action = [arguments] { return import(*arguments); }; });

  CLI::App* getting = add("get", "Fetch the official archive, check its hash, import it",
                          names_where(&DatasetEntry::can_be_fetched));
  getting->add_option("--out", arguments->out, "folder to make")->required();
  getting->callback([arguments, &action] { action = [arguments] { return get(*arguments); }; });
}

}  // namespace basin
