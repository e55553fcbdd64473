#include "sweep/collect/file.h"

#include "io/schema.h"
#include "study/run_options.h"
#include "sweep/collect/columns.h"
#include "sweep/collect/names.h"
#include "sweep/collect/probe_table.h"
#include "sweep/collect/sources.h"
#include "trainers/hooks/registry.h"

namespace basin {
namespace {

constexpr uint8_t kNotThere = 255;  // in /outcomes: this run has no such outcome

/// What hooks of the trainer write into a run's summary.
Meanings with_hook_meanings(Meanings own) {
  for (const HookEntry& entry : hook_registry())
    for (const Column& number : entry.summary)
      own.emplace(number.name, Meaning{number.units, number.long_name, number.definition});
  return own;
}

const Meanings& sweep_meanings() {
  static const Meanings meanings = with_hook_meanings(with_run_meanings({
      {"config_id", {"", "name of the setting without its seed", "config-id"}},
      {"source", {"", "folder of the sweep that the run was taken from", "run-source"}},
      {"status_message", {"", "why, where the status is not finished", "run-status"}},
      {"updates", {"updates", "updates done", "updates"}},
      {"epochs", {"epochs", "nominal examples over training examples", "epochs"}},
      {"examples", {"examples", "nominal examples seen, duplicates counted", "examples"}},
      {"train_loss", {"nat", "training loss, whole set, eval mode", "eval-loss"}},
      {"train_acc", {"1", "training accuracy, eval mode", "eval-accuracy"}},
      {"validation_acc", {"1", "validation accuracy", "eval-accuracy"}},
      {"test_loss", {"nat", "test loss", "eval-loss"}},
      {"test_acc", {"1", "test accuracy", "eval-accuracy"}},
      {"weight_norm", {"weight", "Euclidean norm of all parameters", "weight-norm"}},
      {"distance_from_start", {"weight", "distance from the initial parameters", "distance-from-start"}},
      {"steps_to_target",
       {"updates", "updates at the first check at or below the target", "steps-to-target"}},
      {"seconds", {"s", "wall time of training", "seconds"}},
      {"update_seconds", {"s", "wall time of updates alone", "update-seconds"}},
      {"images_per_second", {"1/s", "image gradients per second", "images-per-second"}},
      {"rank_bytes_per_update", {"B", "bytes that rank 0 had summed in an update", "rank-traffic"}},
      {"rank_wait_share", {"1", "share of updates' time in which rank 0 waited for sums", "rank-traffic"}},
      {"planned_updates",
       {"updates", "the schedule's length; under protocol B what its cap allows", "planned-updates"}},
      {"branch_update", {"updates", "the parent's updates where the run branched from it", "branch-point"}},
      {"branch_examples", {"examples", "the parent's examples there, duplicates counted", "branch-point"}},
      {"branch_gradients", {"gradients", "the parent's image gradients there", "branch-point"}},
      {"branch_train_loss", {"nat", "training loss where the run branched from its parent", "branch-point"}},
      {"epochs_over_budget",
       {"epochs", "epochs beyond those planned, protocol A-epochs alone", "epochs-over-budget"}},
      {"peak_learning_rate",
       {"1", "largest learning rate of the schedule, at this batch size", "peak-learning-rate"}},
      {"warmup_updates", {"updates", "updates of the warm-up", "warmup-updates"}},
      {"learning_rate_factors",
       {"", "parameters whose learning rate has a factor, and the factors", "learning-rate-factors"}},
      {"weight_decay_factors",
       {"", "parameters whose weight decay has a factor, and the factors", "weight-decay-factors"}},
      {"without_weight_decay", {"", "parameters that have no weight decay", "without-weight-decay"}},
      {"without_trust_ratio", {"", "parameters that have no trust ratio", "without-trust-ratio"}},
      {"sgd_noise_scale",
       {"1", "peak learning rate x gain x training examples / batch size", "sgd-noise-scale"}},
      {"scaled_beta1", {"1", "beta1 at this batch size, by the scaling rule", "scaled-beta"}},
      {"scaled_beta2", {"1", "beta2 at this batch size, by the scaling rule", "scaled-beta"}},
      {"scaled_weight_decay", {"1", "weight decay at this batch size, by decay_rule", "scaled-weight-decay"}},
      {"scaled_eps", {"loss/weight", "eps at this batch size, by the scaling rule", "scaled-eps"}},
  }));
  return meanings;
}

bool is_option(const std::string& column) {
  static const RunOptions defaults;
  static const OptionView known = defaults.table();
  return known.has(column);
}

Meaning meaning_of(const std::string& column, const Meanings& probe_meanings) {
  if (auto it = sweep_meanings().find(column); it != sweep_meanings().end()) return it->second;
  if (auto it = probe_meanings.find(column); it != probe_meanings.end()) return it->second;
  if (column.rfind("dataset.", 0) == 0) return {"", column.substr(8) + " of the data set", "dataset"};
  const std::string key = column.starts_with(kAskedFor) ? column.substr(kAskedFor.size()) : column;
  if (is_option(key)) return {"", "option " + key, "option"};
  return {"", column, "undeclared"};
}

Meanings probe_meanings(const std::vector<SweepRow>& rows) {
  Meanings meanings;
  for (const SweepRow& row : rows) {
    for (const ProbeRecord& probe : row.probes) {
      for (const Quantity& quantity : probe.quantities) {
        for (size_t i = 0; i < quantity.value.size(); ++i) {
          const std::string name = probe_column(probe, quantity, i);
          meanings[name] = {quantity.units, quantity.long_name, quantity.definition};
          meanings[name + ".uncertainty"] = {
              quantity.units, std::string("uncertainty: ") + to_string(quantity.uncertainty_kind),
              quantity.definition};
          meanings[name + ".ci_low"] = {quantity.units, "95 % interval, low end", quantity.definition};
          meanings[name + ".ci_high"] = {quantity.units, "95 % interval, high end", quantity.definition};
          meanings[name + ".status"] = {"", "status of the value", quantity.definition};
        }
      }
    }
  }
  return meanings;
}

std::vector<std::string> ids_of(const std::vector<SweepRow>& rows) {
  std::vector<std::string> run_ids;
  for (const SweepRow& row : rows) run_ids.push_back(row.run_id);
  return run_ids;
}

/// Each group has a copy of its own: netCDF's readers look for a dimension in the group and above it, not in its neighbours.
h5::DataSet write_run_scale(h5::Group& group, const std::vector<std::string>& run_ids) {
  h5::DataSet scale = group.write_texts("run_id", run_ids);
  describe(scale, meaning_of("run_id", {}));
  scale.make_scale("run_id");
  return scale;
}

void write_runs(h5::File& file, const std::vector<SweepRow>& rows) {
  h5::Group group = file.create_group("runs");
  group.set_attribute("long_name", std::string("one row per run"));
  const h5::DataSet scale = write_run_scale(group, ids_of(rows));

  std::vector<const ColumnRow*> columns;
  for (const SweepRow& row : rows) columns.push_back(&row.columns);
  const Meanings of_probes = probe_meanings(rows);
  for (const auto& [name, present] : gather_columns(columns)) {
    if (name == "run_id") continue;
    h5::DataSet data = write_column(group, name, present);
    describe(data, meaning_of(name, of_probes));
    data.attach_scale(0, scale);
  }
}

/// One number of each run's test images, [run, example]; `missing` where a run has none.
template <class T>
void write_outcome(h5::Group& group, const std::vector<SweepRow>& rows, const std::string& split,
                   const std::string& name, std::vector<T> ExampleOutcomes::*values, T missing,
                   const Meaning& meaning, const h5::DataSet& runs, const h5::DataSet& example) {
  const auto images = static_cast<size_t>(example.shape().at(0));
  std::vector<T> all(rows.size() * images, missing);
  bool any = false;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto found = rows[i].outcomes.find(split);
    if (found == rows[i].outcomes.end()) continue;
    const std::vector<T>& own = found->second.*values;
    any = any || !own.empty();
    std::copy(own.begin(), own.end(), all.begin() + static_cast<int64_t>(i * images));
  }
  if (!any) return;
  h5::DataSet data =
      group.write(name, c10::CppTypeToScalarType<T>::value,
                  {static_cast<int64_t>(rows.size()), static_cast<int64_t>(images)}, all.data());
  describe(data, meaning);
  data.attach_scale(0, runs);
  data.attach_scale(1, example);
}

void write_outcomes_of(h5::Group group, const std::vector<SweepRow>& rows, const std::string& split) {
  size_t images = 0;
  for (const SweepRow& row : rows)
    if (const auto found = row.outcomes.find(split); found != row.outcomes.end())
      images = std::max(images, found->second.loss.size());
  const h5::DataSet runs = write_run_scale(group, ids_of(rows));
  const h5::DataSet example =
      write_index_scale(group, "example", static_cast<int64_t>(images), "position in the test split");
  write_outcome(group, rows, split, "correct", &ExampleOutcomes::correct, kNotThere,
                {"", "1: right, 0: wrong, 255: the run has no such outcome", "correct"}, runs, example);
  write_outcome(group, rows, split, "loss", &ExampleOutcomes::loss, NAN,
                {"loss", "loss of the image; NaN: the run has no such outcome", "outcome-loss"}, runs,
                example);
  write_outcome(group, rows, split, "predicted", &ExampleOutcomes::predicted, kNotThere,
                {"", "class of the largest logit; 255: the run has no such outcome", "outcome-predicted"},
                runs, example);
}

void write_outcomes(h5::File& file, const std::vector<SweepRow>& rows) {
  std::set<std::string> splits;
  for (const SweepRow& row : rows)
    for (const auto& [split, outcomes] : row.outcomes)
      if (!outcomes.loss.empty()) splits.insert(split);
  if (splits.empty()) return;
  h5::Group group = file.create_group("outcomes");
  for (const std::string& split : splits) write_outcomes_of(group.create_group(split), rows, split);
}

void write_curves(h5::Group& curves, const std::string& name, const std::vector<SweepRow>& rows,
                  const Table SweepRow::*table) {
  int64_t length = 0;
  std::vector<Column> columns;
  std::set<std::string> seen;
  for (const SweepRow& row : rows) {
    length = std::max(length, (row.*table).columns.empty() ? 0 : (row.*table).row_count());
    for (const Column& column : (row.*table).columns) {
      if (column.width == 1 && seen.insert(column.name).second) columns.push_back(column);
    }
  }
  if (length == 0) return;
  h5::Group group = curves.create_group(name);
  const h5::DataSet runs = write_run_scale(group, ids_of(rows));
  const h5::DataSet row_scale = write_index_scale(group, "row", length, "row of the run's table");
  const int64_t count = static_cast<int64_t>(rows.size());
  for (const Column& column : columns) {
    std::vector<double> values(static_cast<size_t>(count * length), NAN);
    for (int64_t i = 0; i < count; ++i) {
      const Table& source = rows[static_cast<size_t>(i)].*table;
      const auto has = [&](const Column& c) { return c.name == column.name; };
      if (std::none_of(source.columns.begin(), source.columns.end(), has)) continue;
      const std::vector<double> entries = source.column(column.name);
      std::copy(entries.begin(), entries.end(), values.begin() + i * length);
    }
    h5::DataSet data = group.write(column.name, at::kDouble, {count, length}, values.data());
    describe(data, {column.units, column.long_name, column.definition});
    data.attach_scale(0, runs);
    data.attach_scale(1, row_scale);
  }
}

bool have_same_columns(const Table& a, const Table& b) {
  return std::equal(a.columns.begin(), a.columns.end(), b.columns.begin(), b.columns.end(),
                    [](const Column& x, const Column& y) {
                      return x.name == y.name && x.width == y.width && x.labels == y.labels;
                    });
}

/// Runs whose tables of layers have the same columns of the same parameters, one list per network.
std::vector<std::vector<const SweepRow*>> by_network(const std::vector<SweepRow>& rows) {
  std::vector<std::vector<const SweepRow*>> lots;
  for (const SweepRow& row : rows) {
    if (row.layers.row_count() == 0) continue;
    const auto is_alike = [&](const std::vector<const SweepRow*>& lot) {
      return have_same_columns(lot[0]->layers, row.layers);
    };
    const auto found = std::find_if(lots.begin(), lots.end(), is_alike);
    if (found == lots.end())
      lots.push_back({&row});
    else
      found->push_back(&row);
  }
  return lots;
}

/// [run, row, entry] of the rows' entries [first, first + the column's width), NaN-padded; of a column
/// without labels [run, row].
template <class T>
h5::DataSet write_padded(h5::Group& group, const Column& column, const std::vector<const SweepRow*>& rows,
                         int64_t length, int64_t first) {
  const int64_t width = column.width;
  std::vector<T> values(rows.size() * static_cast<size_t>(length * width), NAN);
  for (size_t i = 0; i < rows.size(); ++i) {
    const Table& table = rows[i]->layers;
    for (int64_t r = 0; r < table.row_count(); ++r) {
      const auto from = table.rows.begin() + r * table.row_width() + first;
      std::transform(from, from + width, values.begin() + (static_cast<int64_t>(i) * length + r) * width,
                     [](double value) { return static_cast<T>(value); });
    }
  }
  std::vector<int64_t> shape{static_cast<int64_t>(rows.size()), length};
  if (!column.labels.empty()) shape.push_back(width);
  return group.write(column.name, c10::CppTypeToScalarType<T>::value, shape, values.data());
}

/// What differs from run to run: the cadence, and which number the optimiser's trust ratio is.
void write_about_layers(h5::Group& group, const std::vector<const SweepRow*>& rows, const h5::DataSet& runs) {
  std::vector<int64_t> every;
  std::vector<std::string> definitions;
  for (const SweepRow* row : rows) {
    const h5::Attributes& attributes = row->layers.attributes;
    const auto found =
        std::find_if(attributes.begin(), attributes.end(), [](const auto& a) { return a.first == "every"; });
    every.push_back(found == attributes.end() ? 0 : std::get<int64_t>(found->second));
    const std::vector<Column>& columns = row->layers.columns;
    const auto ratio =
        std::find_if(columns.begin(), columns.end(), [](const Column& c) { return c.name == "trust_ratio"; });
    definitions.push_back(ratio == columns.end() ? "" : ratio->definition);
  }
  h5::DataSet cadence = group.write("every", every);
  describe(cadence, {"updates", "updates between rows of the run's own table", "layers-every"});
  cadence.attach_scale(0, runs);
  h5::DataSet definition = group.write_texts("trust_ratio_definition", definitions);
  describe(definition, {"", "which number the trust ratio is", "trust-ratio"});
  definition.attach_scale(0, runs);
}

h5::DataSet write_parameter_scale(h5::Group& group, const std::vector<ParameterRow>& parameters) {
  std::vector<std::string> names, kinds;
  for (const ParameterRow& parameter : parameters) {
    names.push_back(parameter.name);
    kinds.push_back(parameter.kind);
  }
  h5::DataSet scale = group.write_texts("parameter", names);
  describe(scale, {"", "parameter", "parameter-name"});
  scale.make_scale("parameter");
  h5::DataSet kind = group.write_texts("kind", kinds);
  describe(kind, {"", "kind of parameter", "parameter-kind"});
  kind.attach_scale(0, scale);
  return scale;
}

void write_layers_of(h5::Group group, const std::vector<const SweepRow*>& rows) {
  int64_t length = 0;
  std::vector<std::string> run_ids;
  for (const SweepRow* row : rows) {
    length = std::max(length, row->layers.row_count());
    run_ids.push_back(row->run_id);
  }
  const h5::DataSet runs = write_run_scale(group, run_ids);
  const h5::DataSet row_scale = write_index_scale(group, "row", length, "row of the run's table, thinned");
  const h5::DataSet parameters = write_parameter_scale(group, rows[0]->parameters);
  write_about_layers(group, rows, runs);
  int64_t first = 0;
  for (const Column& column : rows[0]->layers.columns) {
    // Norms are for figures; updates are whole numbers that float32 would round beyond 2^24.
    h5::DataSet data = column.labels.empty() ? write_padded<double>(group, column, rows, length, first)
                                             : write_padded<float>(group, column, rows, length, first);
    first += column.width;
    const bool is_ratio = column.name == "trust_ratio";
    describe(data, {column.units, column.long_name, is_ratio ? "trust_ratio_definition" : column.definition});
    data.attach_scale(0, runs);
    data.attach_scale(1, row_scale);
    if (!column.labels.empty()) data.attach_scale(2, parameters);
  }
}

void write_layers(h5::File& file, const std::vector<SweepRow>& rows) {
  const std::vector<std::vector<const SweepRow*>> lots = by_network(rows);
  if (lots.empty()) return;
  h5::Group group = file.create_group("layers");
  group.set_attribute("long_name",
                      fmt::format("norms by run, row and parameter, NaN-padded, at most {} rows per run; "
                                  "a group per network",
                                  kLayersRows));
  for (size_t i = 0; i < lots.size(); ++i)
    write_layers_of(group.create_group(std::to_string(i + 1)), lots[i]);
}

}  // namespace

void write_sweep_file(const std::string& path, const std::vector<SourceEntry>& sources,
                      const std::vector<SweepRow>& rows) {
  h5::File file = create_schema_file(path, kSweepSchema);
  file.set_attribute("default", std::string("runs"));
  file.set_attribute("study", study_of(sources));
  write_runs(file, rows);
  write_names(file, rows);
  if (sources.size() > 1) write_sources(file, sources);
  write_probe_table(file, rows);
  write_outcomes(file, rows);
  h5::Group curves = file.create_group("curves");
  curves.set_attribute("long_name",
                       fmt::format("curves by run and row, NaN-padded, at most {} rows per run of train, "
                                   "{} of eval and those where it passes a loss level",
                                   kTrainRows, kEvalRows));
  write_curves(curves, "train", rows, &SweepRow::train);
  write_curves(curves, "eval", rows, &SweepRow::eval);
  write_curves(curves, "ledger", rows, &SweepRow::ledger);
  write_layers(file, rows);
  file.save();
}

}  // namespace basin
