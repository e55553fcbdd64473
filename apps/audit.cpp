#include <CLI/CLI.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>

#include "apps/arguments.h"
#include "apps/audit_file.h"
#include "apps/audit_plan.h"
#include "apps/probe_subject.h"
#include "apps/subcommands.h"
#include "core/error.h"
#include "core/files.h"
#include "core/progress.h"
#include "core/provenance.h"
#include "core/seed.h"
#include "io/probe_file.h"
#include "io/schema.h"
#include "probes/registry.h"

namespace basin {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDraws = 4;  // seeds of the probes on the network as it is, the run's own first

struct AuditArguments {
  std::string checkpoint, out, dtype = "float64";
  std::vector<std::string> only, sets;
  int64_t subset = 256, micro_batch = 256;
  bool force = false;
};

/// RUN of RUN/ckpt/<label>.h5.
std::string run_folder_of(const std::string& checkpoint) {
  const fs::path folder = fs::absolute(checkpoint).lexically_normal().parent_path();
  if (folder.filename() != "ckpt")
    throw ConfigError(checkpoint + ": an audit wants a checkpoint of a run, RUN/ckpt/<label>.h5");
  return folder.parent_path();
}

/// `--set` is for probes that are audited, and for [runtime].
RuntimeOptions runtime_of(const AuditArguments& arguments) {
  RunOptions options;
  OptionTable allowed;
  for (const std::string& probe : arguments.only) options.probe_options.bind_only(allowed, probe);
  allowed.group("runtime", [&](OptionTable& t) { bind_options(t, options.runtime); });
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

/// See verdict_of().
double rounding_of(const ProbePlan& plan) { return plan.dtype == "float64" ? 1e-6 : 1e-2; }

using Results = std::vector<ProbeResult>;  // one a variant

/// Nothing where the result lacks the quantity, or that many entries.
AuditValue value_in(const ProbeResult& result, const std::string& name, size_t i) {
  for (const Quantity& quantity : result.quantities)
    if (quantity.name == name && i < quantity.value.size())
      return {quantity.value[i], quantity.uncertainty[i], quantity.uncertainty_kind};
  return {NAN, NAN, "none"};
}

/// Networks with the same function, and the probes that look at them.
class Audit {
 public:
  Audit(const std::string& run_folder, const Checkpoint& checkpoint, const ProbePlan& plan, at::Device device,
        std::vector<AuditVariant> variants)
      : checkpoint_(checkpoint),
        subject_(run_folder, checkpoint, plan, device),
        variants_(std::move(variants)) {}

  std::vector<AuditTrial> trials() const {
    return audit_trials(subject_.prepare(checkpoint_).objective->model(), subject_.classes(),
                        subject_.seed());
  }

  /// Draw 0 is the run's own seed.
  Results measure(const Symmetry& symmetry, size_t draw) const {
    Prepared prepared = subject_.prepare(transformed(checkpoint_, symmetry));
    if (prepared.initial_weights.defined())
      prepared.initial_weights = transformed(prepared.initial_weights, prepared.objective->model(), symmetry);
    ProbeContext context = subject_.context(prepared);
    if (draw > 0) context.seed = derive_seed(context.seed, "audit", draw);
    Results results;
    for (const AuditVariant& variant : variants_) {
      results.push_back(run_or_fail(variant.probe, *variant.options, context));
    }
    return results;
  }

  const Subject& subject() const { return subject_; }
  const std::vector<AuditVariant>& variants() const { return variants_; }

 private:
  const Checkpoint& checkpoint_;
  Subject subject_;
  std::vector<AuditVariant> variants_;
};

/// Values of one probe's settings: of the network as it is by every seed, and of each transformed one.
struct Measured {
  const AuditVariant& variant;
  std::vector<ProbeResult> originals, transformed;
};

std::vector<Measured> measure_all(const Audit& audit, const std::vector<AuditTrial>& trials, bool progress) {
  std::vector<Measured> all;
  for (const AuditVariant& variant : audit.variants()) all.push_back({variant, {}, {}});
  Progress line("audit", static_cast<double>(kDraws + trials.size()), "networks", progress);
  for (size_t i = 0; i < kDraws + trials.size(); ++i) {
    const bool original = i < kDraws;
    Results results = original ? audit.measure({}, i) : audit.measure(trials[i - kDraws].symmetry, 0);
    for (size_t v = 0; v < all.size(); ++v)
      (original ? all[v].originals : all[v].transformed).push_back(std::move(results[v]));
    line.update(static_cast<double>(i + 1));
  }
  line.finish(static_cast<double>(kDraws + trials.size()));
  return all;
}

/// All that a probe found; the same text for the same findings.
std::string findings(const ProbeResult& result) {
  std::string text;
  for (const Quantity& q : result.quantities)
    text += fmt::format("{} {} {} {} {}\n", q.name, q.value, q.uncertainty, q.ci_low, q.ci_high);
  for (const auto& [name, value] : result.attributes)
    if (name != "seed") text += fmt::format("{} {}\n", name, to_toml(value));
  return text;
}

/// By the last bit: a seed's numbers repeat exactly, and no probe has numbers with an error over examples
/// that aren't drawn beside others that are.
bool is_drawn(const std::vector<ProbeResult>& by_seed) {
  return std::any_of(by_seed.begin(), by_seed.end(), [&](const ProbeResult& result) {
    return findings(result) != findings(by_seed.front());
  });
}

/// Of one number, a row for each transformation.
void append_rows(const Measured& measured, bool drawn, const Quantity& quantity, size_t entry,
                 const std::vector<AuditTrial>& trials, double rounding, std::vector<AuditRow>& rows) {
  Redrawn redrawn{{}, drawn};
  for (const ProbeResult& original : measured.originals)
    redrawn.values.push_back(value_in(original, quantity.name, entry).value);
  for (size_t t = 0; t < trials.size(); ++t) {
    AuditRow row{measured.variant.probe,
                 measured.variant.settings,
                 entry_name(quantity.name, quantity.is_vector, entry),
                 quantity.definition,
                 trials[t].transformation,
                 trials[t].kind,
                 trials[t].strength};
    row.before = value_in(measured.originals.front(), quantity.name, entry);
    row.after = value_in(measured.transformed[t], quantity.name, entry);
    row.verdict = verdict_of(row.before, row.after, redrawn, rounding);
    rows.push_back(std::move(row));
  }
}

/// What was measured of one quantity, on every network.
std::string all_values(const Measured& measured, const Quantity& quantity) {
  std::string text = fmt::format("{} {} {}", measured.variant.probe, quantity.name, quantity.definition);
  for (const auto* results : {&measured.originals, &measured.transformed}) {
    for (const ProbeResult& result : *results) {
      for (const Quantity& q : result.quantities)
        if (q.name == quantity.name) text += fmt::format(" {}", q.value);
    }
  }
  return text;
}

/// A number that a variant's options don't touch stands once.
std::vector<AuditRow> rows_of(const std::vector<Measured>& all, const std::vector<AuditTrial>& trials,
                              double rounding) {
  std::vector<AuditRow> rows;
  std::set<std::string> known;
  for (const Measured& measured : all) {
    const bool drawn = is_drawn(measured.originals);
    for (const Quantity& quantity : measured.originals.front().quantities) {
      if (!known.insert(all_values(measured, quantity)).second) continue;
      for (size_t entry = 0; entry < quantity.value.size(); ++entry)
        append_rows(measured, drawn, quantity, entry, trials, rounding, rows);
    }
  }
  return rows;
}

/// Whether there are any.
bool print_failures(const std::vector<Measured>& all) {
  bool failed = false;
  for (const Measured& measured : all) {
    const ProbeResult& original = measured.originals.front();
    if (original.status != "failed") continue;
    fmt::print("{}  failed: {}\n", measured.variant.probe, original.message);
    failed = true;
  }
  return failed;
}

std::string with_error(const AuditValue& value) {
  if (value.uncertainty_kind == "none") return fmt::format("{:.6g}", value.value);
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

/// Definitions, each with the settings beside the usual ones, that `chosen` is true for in any row.
std::set<std::string> measures_where(const std::vector<AuditRow>& rows,
                                     const std::function<bool(const AuditRow&)>& chosen) {
  std::set<std::string> names;
  for (const AuditRow& row : rows)
    if (chosen(row)) names.insert(row.definition + (row.settings.empty() ? "" : " (" + row.settings + ")"));
  return names;
}

void print_summary(const std::vector<AuditRow>& rows) {
  const std::set<std::string> greyed = measures_where(rows, [](const AuditRow& row) { return row.greyed(); });
  std::set<std::string> stays = measures_where(
      rows, [](const AuditRow& row) { return row.kind == "function" && row.verdict != Verdict::unresolved; });
  std::erase_if(stays, [&](const std::string& name) { return greyed.count(name) == 1; });
  fmt::print("\nmoved while the function stayed: {}\n",
             greyed.empty() ? "none" : fmt::format("{}", fmt::join(greyed, ", ")));
  fmt::print("stayed with the function: {}\n",
             stays.empty() ? "none" : fmt::format("{}", fmt::join(stays, ", ")));
}

AuditFile file_of(const Audit& audit, const Checkpoint& checkpoint, const ProbePlan& plan,
                  std::vector<AuditRow> rows) {
  AuditFile file;
  file.attributes = {{"run_id", checkpoint.run_id},
                     {"config_id", checkpoint.config_id},
                     {"checkpoint", checkpoint.label},
                     {"checkpoint_sha256", content_hash(checkpoint)},
                     {"n_examples", audit.subject().examples_of(plan)},
                     {"subset_hash", audit.subject().subset_hash()},
                     {"dtype", plan.dtype},
                     {"seed", std::to_string(audit.subject().seed())}};
  file.provenance = collect_provenance();
  file.provenance.emplace_back("ended_utc", utc_now());
  file.rows = std::move(rows);
  return file;
}

/// Only an audit is replaced, and only where that is asked for. What lies at the place of our own may be
/// damaged.
void check_replaceable(const std::string& path, bool own_place, bool force) {
  if (!fs::exists(path)) return;
  if (!fs::is_regular_file(path)) throw IoError(path + ": not a regular file");
  if (!own_place || !force) open_schema_file(path, kAuditSchema);
  if (!force)
    throw ConfigError(path + ": an audit lies there already; --force replaces it, --out FILE writes another");
}

int run_audit(AuditArguments arguments) {
  if (arguments.only.empty()) arguments.only = names_of(probe_registry());
  const ProbePlan plan = plan_of(arguments);
  const RuntimeOptions runtime = runtime_of(arguments);
  const std::string run_folder = run_folder_of(arguments.checkpoint);
  const Checkpoint checkpoint = read_checkpoint(arguments.checkpoint);
  const std::string path =
      arguments.out.empty() ? run_folder + "/audit/" + checkpoint.label + ".h5" : arguments.out;
  const auto check_place = [&] { check_replaceable(path, arguments.out.empty(), arguments.force); };
  check_place();
  const Audit audit(run_folder, checkpoint, plan, apply_runtime(runtime),
                    audit_variants(arguments.only, arguments.sets));
  const std::vector<AuditTrial> trials = audit.trials();
  if (trials.empty())
    throw ConfigError(arguments.checkpoint +
                      ": its model has no transformation that leaves anything unchanged");
  const std::vector<Measured> all = measure_all(audit, trials, runtime.progress);
  const AuditFile file = file_of(audit, checkpoint, plan, rows_of(all, trials, rounding_of(plan)));
  const bool failed = print_failures(all);
  print_rows(file.rows);
  print_summary(file.rows);
  check_place();  // another may have been written meanwhile
  if (arguments.out.empty()) make_folders(run_folder + "/audit");
  write_audit_file(path, file);
  fmt::print("in {}\n", path);
  return failed ? 1 : 0;
}

}  // namespace

void add_audit(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<AuditArguments>();
  CLI::App* command = app.add_subcommand(
      "audit", "Which measures stay where other weights make the same function (docs/measures.md)");
  command->add_option("checkpoint", arguments->checkpoint, "OUT/runs/<run_id>/ckpt/<label>.h5")->required();
  add_list_option(*command, "--only", arguments->only, "probes, by name; default: all");
  command->add_option("--subset", arguments->subset,
                      "training examples, chosen by image hash; 0: all; default: 256");
  command->add_option("--micro-batch", arguments->micro_batch, "examples a pass; memory alone");
  command->add_option("--dtype", arguments->dtype, "float64, the default, or float32");
  command->add_option("--out", arguments->out, "file; default: RUN/audit/<label>.h5");
  command->add_flag("--force", arguments->force, "replace an audit that lies there");
  add_set_option(*command, arguments->sets);
  command->callback([arguments, &action] { action = [arguments] { return run_audit(*arguments); }; });
}

}  // namespace basin
