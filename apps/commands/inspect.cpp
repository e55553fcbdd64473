#include <CLI/CLI.hpp>

#include "apps/arguments.h"
#include "apps/commands/registry_list.h"
#include "apps/output/json_output.h"
#include "apps/subcommands.h"
#include "core/error.h"
#include "core/files.h"
#include "core/messages.h"
#include "io/journal.h"
#include "io/journal_frames.h"
#include "io/probe_file.h"
#include "io/run_file.h"
#include "io/schema.h"
#include "landscape/surface_file.h"
#include "runs/folder.h"

namespace basin {
namespace {

constexpr size_t kLongestText = 60;

// ---- files

/// A value as TOML in one line, shortened if it is long. NaN is what no run measured.
std::string shown(const OptionValue& value) {
  if (const double* number = std::get_if<double>(&value); number && std::isnan(*number))
    return "not measured";
  std::string text = to_toml(value);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.size() <= kLongestText ? text : text.substr(0, kLongestText) + " ...";
}

void print_attributes(const h5::Attributes& attributes, const std::string& indent) {
  for (const auto& [name, value] : attributes) fmt::print("{}{} = {}\n", indent, name, shown(value));
}

std::string type_name(const h5::DataSet& dataset) {
  return dataset.is_text() ? "text" : c10::toString(dataset.dtype());
}

std::string text_attribute(const h5::DataSet& dataset, const std::string& name) {
  return dataset.has_attribute(name) ? dataset.attribute_as<std::string>(name) : "";
}

void print_dataset(const h5::DataSet& dataset, const std::string& name, const std::string& indent) {
  const std::string units = text_attribute(dataset, "units"), what = text_attribute(dataset, "long_name");
  fmt::print("{}{:<28} {:<7} [{}]", indent, name, type_name(dataset), fmt::join(dataset.shape(), " x "));
  if (!what.empty()) fmt::print("  {}", what);
  if (!units.empty() && units != "1") fmt::print(" [{}]", units);
  fmt::print("\n");
}

/// Without the child `shown_before`.
void print_group(const h5::Group& group, const std::string& indent, const std::string& shown_before = "") {
  for (const std::string& name : group.dataset_names()) print_dataset(group.dataset(name), name, indent);
  for (const std::string& name : group.group_names()) {
    if (name == shown_before) continue;
    const h5::Group child = group.group(name);
    fmt::print("{}{}/\n", indent, name);
    print_attributes(child.attributes(), indent + "  ");
    print_group(child, indent + "  ");
  }
}

/// The summary of a run comes first.
void print_run(const RunRecord& record) {
  fmt::print("run {} of setting {}: {}{}\n", record.header.run_id, record.header.config_id,
             to_string(record.status),
             record.status_message.empty() ? "" : " (" + record.status_message + ")");
  print_attributes(record.summary, "  ");
  for (const auto& [name, table] : record.tables) {
    fmt::print("  {}: {} rows x {} columns\n", name, table.row_count(), table.columns.size());
  }
  fmt::print("\n");
}

std::string entry(const std::vector<double>& values, size_t i) {
  return i < values.size() ? fmt::format("{:.6g}", values[i]) : "-";
}

void print_probe(const ProbeRecord& record) {
  fmt::print("probe {} on checkpoint {} of run {}: {}{}\n", record.probe, record.checkpoint, record.run_id,
             to_string(record.status), record.message.empty() ? "" : " (" + record.message + ")");
  fmt::print("  {:<30} {:>13} {:>13}  {:<16} {:<24} {}\n", "quantity", "value", "uncertainty", "kind",
             "95 % interval", "status");
  for (const Quantity& q : record.quantities) {
    for (size_t i = 0; i < q.value.size(); ++i) {
      const std::string name = entry_name(q.name, q.is_vector, i);
      const std::string interval =
          i < q.ci_low.size() ? fmt::format("[{}, {}]", entry(q.ci_low, i), entry(q.ci_high, i)) : "-";
      const std::string uncertainty =
          q.uncertainty_kind == UncertaintyKind::none ? "-" : entry(q.uncertainty, i);
      fmt::print("  {:<30} {:>13} {:>13}  {:<16} {:<24} {}\n", name, entry(q.value, i), uncertainty,
                 to_string(q.uncertainty_kind), interval, to_string(q.status_of(i)));
    }
  }
  fmt::print("\n");
}

void print_checkpoint(const h5::File& file) {
  const h5::Group model = file.group("model");
  int64_t numel = 0;
  const std::vector<std::string> names = model.dataset_names();
  for (const std::string& name : names) numel += c10::multiply_integers(model.dataset(name).shape());
  fmt::print("checkpoint {} of run {} after {} updates: {} parameters in {} tensors\n\n",
             file.attribute_as<std::string>("label"), file.attribute_as<std::string>("run_id"),
             file.attribute_as<int64_t>("update"), numel, names.size());
}

void print_sweep(const h5::File& file) {
  std::map<std::string, int> counts;
  for (const std::string& status : file.dataset("runs/status").read_texts()) ++counts[status];
  fmt::print("sweep:");
  for (const auto& [status, count] : counts) fmt::print(" {} {}", count, status);
  fmt::print("; {} columns\n\n", file.group("runs").dataset_names().size());
}

void print_tuning(const h5::File& file) {
  const std::vector<double> loss = file.dataset("winners/validation_loss").read<double>();
  const std::vector<std::string> groups = file.dataset("winners/group").read_texts();
  const std::vector<double> rates = file.dataset("winners/learning_rate").read<double>();
  fmt::print("tuning: {}, {}\n", counted(file.dataset("runs/run_id").shape()[0], "run"),
             counted(groups.size(), "group"));
  for (size_t i = 0; i < groups.size(); ++i)
    fmt::print("  {}: learning_rate {:g}, validation loss {:.4f}\n", groups[i], rates[i], loss[i]);
  fmt::print("\n");
}

void print_surface(const SurfaceRecord& record) {
  fmt::print("landscape of kind {}: {}\n", record.kind, to_string(record.status()));
  for (const SurfacePlot& plot : record.plots) {
    std::vector<std::string> axes;
    for (const SurfaceAxis& axis : plot.axes)
      axes.push_back(fmt::format("{} {}", axis.values.size(), axis.name));
    fmt::print("  {}: {} ({})\n", plot.name, plot.long_name, fmt::join(axes, " x "));
  }
  fmt::print("\n");
}

void print_headline(const std::string& path, const h5::File& file) {
  const std::string schema = schema_of(file);
  if (schema == kRunSchema) print_run(read_run_file(path));
  if (schema == kCheckpointSchema) print_checkpoint(file);
  if (schema == kProbeSchema) print_probe(read_probe_file(path));
  if (schema == kSweepSchema) print_sweep(file);
  if (schema == kTuneSchema) print_tuning(file);
  if (schema == kSurfaceSchema) print_surface(read_surface_file(path));
}

bool is_journal(const std::string& path) {
  std::string start(kJournalMagic.size(), '\0');
  std::ifstream(path, std::ios::binary).read(start.data(), static_cast<std::streamsize>(start.size()));
  return start == kJournalMagic;
}

/// A folder stands for its main file.
std::string file_of(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return path;
  const bool sweep = is_sweep_folder(path);
  if (sweep && !std::filesystem::exists(path + "/sweep.h5")) {
    throw ConfigError(
        fmt::format("{0} is the folder of a sweep without sweep.h5: run `basin collect {0}`, or name one "
                    "of its runs, {0}/runs/<run_id>",
                    path));
  }
  return path + (sweep ? "/sweep.h5" : "/run.h5");
}

void print_file(const std::string& path) {
  if (is_journal(path)) {
    bool torn = false;
    const RunRecord record = replay_journal(path, &torn);
    fmt::print("{}\n", path);
    print_run(record);
    if (torn) fmt::print("  the last entry was cut off by a crash\n");
    return;
  }
  const h5::File file = h5::File::open(path);
  fmt::print("{}\n", path);
  print_headline(path, file);
  print_attributes(file.attributes(), "");
  print_group(file, "", schema_of(file) == kRunSchema ? "summary" : "");
}

// ---- the same for programs

Json json_of(const h5::DataSet& dataset) {
  Json object = {{"type", type_name(dataset)}, {"shape", dataset.shape()}};
  for (const char* name : {"units", "long_name", "definition"})
    object[name] = dataset.has_attribute(name) ? basin::json_of(dataset.attribute(name)) : Json("");
  return object;
}

Json json_of(const h5::Group& group) {
  Json datasets = Json::object(), groups = Json::object();
  for (const std::string& name : group.dataset_names()) datasets[name] = json_of(group.dataset(name));
  for (const std::string& name : group.group_names()) groups[name] = json_of(group.group(name));
  return {{"attributes", basin::json_of(group.attributes())},
          {"datasets", std::move(datasets)},
          {"groups", std::move(groups)}};
}

Json runs_by_status(const h5::File& file) {
  std::map<std::string, int64_t> counts;
  for (const std::string& status : file.dataset("runs/status").read_texts()) ++counts[status];
  return counts;
}

/// How the run ended, its summary and the sizes of its tables.
Json json_of(const RunRecord& record) {
  Json tables = Json::object();
  for (const auto& [name, table] : record.tables)
    tables[name] = {{"rows", table.row_count()}, {"columns", table.columns.size()}};
  return {{"run_id", record.header.run_id},
          {"config_id", record.header.config_id},
          {"status", to_string(record.status)},
          {"message", record.status_message},
          {"summary", basin::json_of(record.summary)},
          {"tables", std::move(tables)}};
}

/// What the file is, what its reader wants first, and its tree: attributes, and each dataset without its values.
Json json_of_h5(const std::string& path) {
  const h5::File file = h5::File::open(path);
  const std::string kind = schema_of(file);
  Json found = {{"file", path}, {"kind", kind}};
  if (kind == kRunSchema) found["run"] = json_of(read_run_file(path));
  if (kind == kProbeSchema) found["probe"] = json_of(read_probe_file(path));
  if (kind == kSweepSchema) found["runs"] = runs_by_status(file);
  found["content"] = json_of(static_cast<const h5::Group&>(file));
  return found;
}

Json json_of_file(const std::string& path) {
  if (!is_journal(path)) return json_of_h5(path);
  bool torn = false;
  const RunRecord record = replay_journal(path, &torn);
  return {{"file", path}, {"kind", "basin/journal"}, {"run", json_of(record)}, {"torn", torn}};
}

struct InspectArguments {
  std::string path, list;
  bool json = false;
};

int inspect(const InspectArguments& arguments) {
  if (!arguments.list.empty()) {
    print_list(arguments.list, arguments.json);
    return 0;
  }
  if (arguments.path.empty()) throw ConfigError("inspect: name a file or use --list");
  const std::string file = file_of(arguments.path);
  if (arguments.json)
    print_json("inspect", json_of_file(file));
  else
    print_file(file);
  return 0;
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<InspectArguments>();
  CLI::App* command = app.add_subcommand("inspect", "Show what is in a Basin file, or what can be chosen");
  command->add_option("FILE", arguments->path,
                      "run.h5, checkpoint, probe file, sweep.h5, tune.h5, landscape, journal, or the folder "
                      "of a run or sweep");
  take_one_of(
      *command->add_option("--list", arguments->list, fmt::format("{}", fmt::join(list_names(), ", "))),
      "list", list_names());
  add_json_flag(*command, arguments->json);
  command->callback([arguments, &action] { action = [arguments] { return inspect(*arguments); }; });
}

}  // namespace basin
