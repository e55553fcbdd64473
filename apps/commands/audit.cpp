#include "runs/audit/audit.h"

#include <CLI/CLI.hpp>

#include <fmt/ranges.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <set>

#include "apps/arguments.h"
#include "apps/output/json_output.h"
#include "apps/subcommands.h"
#include "core/error.h"
#include "core/file_lock.h"
#include "core/files.h"
#include "io/schema.h"
#include "probes/registry.h"

namespace basin {
namespace {

namespace fs = std::filesystem;

struct AuditArguments {
  std::string checkpoint, out, dtype = "float64";
  std::vector<std::string> only, sets;
  int64_t subset = 256, micro_batch = 256;
  bool force = false, json = false;
};

/// RUN of RUN/ckpt/<label>.h5, relative where that is.
std::string run_folder_of(const std::string& checkpoint) {
  const fs::path folder = fs::absolute(checkpoint).lexically_normal().parent_path();
  if (folder.filename() != "ckpt")
    throw ConfigError(checkpoint + ": an audit needs a checkpoint of a run, RUN/ckpt/<label>.h5");
  return fs::path(checkpoint).is_absolute() ? folder.parent_path() : fs::proximate(folder.parent_path());
}

std::vector<std::string> known_probes() { return names_of(probe_registry()); }

/// `--set` changes options of the audited probes and of [runtime].
OptionTable settable(RunOptions& options, const std::vector<std::string>& probes) {
  OptionTable table;
  for (const std::string& probe : probes) options.probe_options.bind_only(table, probe);
  table.group("runtime", [&](OptionTable& t) { bind_options(t, options.runtime); });
  return table;
}

std::vector<std::string> known_settings() {
  RunOptions options;
  return settings_of(settable(options, known_probes()));
}

RuntimeOptions runtime_of(const AuditArguments& arguments) {
  RunOptions options;
  OptionTable allowed = settable(options, arguments.only);
  for (const std::string& set : arguments.sets) allowed.set_from_text(set, "--set");
  return options.runtime;
}

ProbePlan plan_of(const AuditArguments& arguments) {
  ProbePlan plan;
  OptionTable table;
  bind_options(table, plan);
  table.set("subset", arguments.subset, "--subset");
  table.set("micro_batch", arguments.micro_batch, "--micro-batch");
  table.set("dtype", arguments.dtype, "--dtype");
  table.set("run", arguments.only, "--only");
  return plan;
}

std::string with_error(const AuditValue& value) {
  if (value.uncertainty_kind == UncertaintyKind::none) return fmt::format("{:.6g}", value.value);
  return fmt::format("{:.6g} +- {:.2g}", value.value, value.uncertainty);
}

void print_rows(const std::vector<AuditRow>& rows) {
  std::string probe, quantity, definition;
  for (const AuditRow& row : rows) {
    const std::string heading = row.probe + (row.settings.empty() ? "" : " (" + row.settings + ")");
    if (heading != probe) fmt::print("\n{}\n", heading);
    if (heading != probe || row.quantity != quantity || row.definition != definition)
      fmt::print("  {:<42} {}  ({})\n", row.quantity, with_error(row.before), row.definition);
    probe = heading;
    quantity = row.quantity;
    definition = row.definition;
    const std::string strength = std::isnan(row.strength) ? "" : fmt::format(" {:g}", row.strength);
    const std::string ratio = std::isnan(row.ratio()) ? "–" : fmt::format("{:.4g}", row.ratio());
    fmt::print("    {:<24} {:>26}  x {:<10} {}\n", row.transformation + strength, with_error(row.after),
               ratio, to_string(row.verdict));
  }
}

/// The definitions for which `chosen` is true in some row, each with
/// the settings that differ from the defaults.
std::set<std::string> measures_where(const std::vector<AuditRow>& rows,
                                     const std::function<bool(const AuditRow&)>& chosen) {
  std::set<std::string> names;
  for (const AuditRow& row : rows)
    if (chosen(row)) names.insert(row.definition + (row.settings.empty() ? "" : " (" + row.settings + ")"));
  return names;
}

struct AuditSummary {
  std::set<std::string> moved, stayed;  // while the function stayed
};

AuditSummary summary_of(const std::vector<AuditRow>& rows) {
  AuditSummary summary;
  summary.moved = measures_where(rows, [](const AuditRow& row) { return row.greyed(); });
  summary.stayed = measures_where(rows, [](const AuditRow& row) {
    return row.kind == Kept::function && row.verdict != Verdict::unresolved;
  });
  std::erase_if(summary.stayed, [&](const std::string& name) { return summary.moved.count(name) == 1; });
  return summary;
}

void print_summary(const std::vector<AuditRow>& rows) {
  const AuditSummary summary = summary_of(rows);
  const auto text = [](const std::set<std::string>& names) {
    return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
  };
  fmt::print("\nchanged although the function didn't: {}\n", text(summary.moved));
  fmt::print("unchanged like the function: {}\n", text(summary.stayed));
}

Json json_of(const AuditValue& value) {
  return {{"value", value.value},
          {"uncertainty", value.uncertainty},
          {"uncertainty_kind", to_string(value.uncertainty_kind)}};
}

Json json_of(const AuditRow& row) {
  return {{"probe", row.probe},
          {"settings", row.settings},
          {"quantity", row.quantity},
          {"definition", row.definition},
          {"transformation", row.transformation},
          {"kind", to_string(row.kind)},
          {"strength", row.strength},
          {"before", json_of(row.before)},
          {"after", json_of(row.after)},
          {"ratio", row.ratio()},
          {"verdict", to_string(row.verdict)}};
}

Json json_of(const AuditResult& audit, const std::string& path) {
  Json rows = Json::array(), failures = Json::array();
  for (const AuditRow& row : audit.file.rows) rows.push_back(json_of(row));
  for (const auto& [probe, message] : audit.failures)
    failures.push_back({{"probe", probe}, {"message", message}});
  const AuditSummary summary = summary_of(audit.file.rows);
  return {{"file", path},
          {"attributes", basin::json_of(audit.file.attributes)},
          {"failures", std::move(failures)},
          {"rows", std::move(rows)},
          {"moved", summary.moved},
          {"stayed", summary.stayed}};
}

void print_audit(const AuditResult& audit, const std::string& path) {
  for (const auto& [probe, message] : audit.failures) fmt::print("{}  failed: {}\n", probe, message);
  print_rows(audit.file.rows);
  print_summary(audit.file.rows);
  fmt::print("in {}{}\n", path, audit.failures.empty() ? "" : "; --force measures again what failed");
}

/// Replaces nothing but an audit, and only on request. The file in the default place may be damaged.
void check_replaceable(const std::string& path, bool own_place, bool force) {
  if (!fs::exists(path)) return;
  if (!fs::is_regular_file(path)) throw IoError(path + ": not a regular file");
  if (!own_place || !force) open_schema_file(path, kAuditSchema);
  if (!force)
    throw ConfigError(path + ": an audit exists already; --force replaces it, --out FILE writes another");
}

int run_audit(AuditArguments arguments) {
  if (arguments.only.empty()) arguments.only = known_probes();
  const ProbePlan plan = plan_of(arguments);
  const RuntimeOptions runtime = runtime_of(arguments);
  const std::string run_folder = run_folder_of(arguments.checkpoint);
  const Checkpoint checkpoint = read_checkpoint(arguments.checkpoint);
  const std::string path =
      arguments.out.empty() ? run_folder + "/audit/" + checkpoint.label + ".h5" : arguments.out;
  const auto check_place = [&] { check_replaceable(path, arguments.out.empty(), arguments.force); };
  check_place();
  const AuditResult audit =
      measure_audit(run_folder, checkpoint, {plan, arguments.sets, runtime.progress}, apply_runtime(runtime));
  std::optional<FileLock> writing;  // two that end at once would write one temporary file
  if (arguments.out.empty()) {
    make_folders(run_folder + "/audit");
    writing.emplace(FileLock::wait(run_folder + "/audit/lock"));
  }
  check_place();  // another audit may have been written meanwhile
  write_audit_file(path, audit.file);
  if (arguments.json)
    print_json("audit", json_of(audit, path));
  else
    print_audit(audit, path);
  if (audit.failures.empty()) return 0;
  std::set<std::string> failed;
  for (const auto& [probe, message] : audit.failures) failed.insert(probe);
  throw Error(1, fmt::format("{}: failed: {}", path, fmt::join(failed, ", ")));
}

}  // namespace

void add_audit(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<AuditArguments>();
  CLI::App* command = app.add_subcommand(
      "audit", "Find out which measures change when other weights give the same function (docs/measures.md)");
  command->add_option("checkpoint", arguments->checkpoint, "OUT/runs/<run_id>/ckpt/<label>.h5")->required();
  add_list_option(*command, "--only", arguments->only, "names of probes; default: all", known_probes);
  command->add_option("--subset", arguments->subset,
                      "number of training examples, chosen by image hash; 0: all; default: 256");
  command->add_option("--micro-batch", arguments->micro_batch,
                      "examples per pass; affects memory, not results");
  offer(*command->add_option("--dtype", arguments->dtype, "float32 or float64; default: float64"), Offer::one,
        [] { return values_of("probes.dtype"); });
  command->add_option("--out", arguments->out, "file; default: RUN/audit/<label>.h5");
  command->add_flag("--force", arguments->force, "replace an existing audit");
  add_json_flag(*command, arguments->json);
  add_set_option(*command, arguments->sets, known_settings);
  command->callback([arguments, &action] { action = [arguments] { return run_audit(*arguments); }; });
}

}  // namespace basin
