#include "trainers/tables.h"

namespace basin {
namespace {

constexpr const char* kExamplesDefinition = "batch sizes added up: duplicates counted";
constexpr int64_t kLayersRows = 200;  // over the budget, where layers_every leaves it to us
constexpr const char* kGradientNormDefinition =
    "Euclidean norm of the batch's mean gradient, perturbed as asked for, before clipping";
constexpr const char* kGradientsDefinition =
    "a duplicate merged into one costs one; with a perturbation every example costs two";

std::vector<std::string> names_of_parameters(const std::vector<ParameterInfo>& parameters) {
  std::vector<std::string> names;
  for (const ParameterInfo& parameter : parameters) names.push_back(parameter.name);
  return names;
}

bool has_batch_sizes(const TrainOptions& options) { return !options.batch_milestones.empty(); }

void append_each(std::vector<double>& row, const std::vector<ParameterStep>& steps,
                 double ParameterStep::*field) {
  for (const ParameterStep& step : steps) row.push_back(step.*field);
}

}  // namespace

Column column(const std::string& name, const std::string& units, const std::string& long_name,
              const std::string& definition) {
  return {name, units, long_name, definition, 1, {}};
}

Table train_table(const TrainOptions& options, const std::vector<Column>& of_hooks) {
  const auto norm = [](const std::string& name, const std::string& units, const std::string& long_name,
                       const std::string& definition) {
    return column(name, units, long_name, definition + "; NaN where the update took no norms");
  };
  Table table;
  table.name = "train";
  table.long_name = "training, one row per update";
  table.columns = {
      column("update", "1", "updates done", "number of this update, from 1"),
      column(
          "loss", units_of(loss_kind(options.loss)), "batch loss",
          "mean loss of this update's batch, labels smoothed as trained on, train mode, before the update"),
      column("learning_rate", "1", "learning rate",
             "peak rate x scaling rule x schedule, used in this update"),
      norm("gradient_norm", "loss/weight", "gradient norm", kGradientNormDefinition),
      norm("update_norm", "weight", "update norm",
           "Euclidean norm of the change of all parameters by the optimiser"),
      norm("weight_norm", "weight", "weight norm", "Euclidean norm of all parameters before the update"),
      norm("distance_from_start", "weight", "distance from start",
           "Euclidean distance of all parameters from their initial values, after the update"),
      column("examples", "examples", "examples seen", kExamplesDefinition),
      column("gradients", "gradients", "image gradients computed", kGradientsDefinition),
      column("seconds", "s", "wall time", "of the run, checks and evaluations included"),
  };
  table.columns.insert(table.columns.end(), of_hooks.begin(), of_hooks.end());
  if (has_batch_sizes(options)) {
    table.columns.push_back(column("batch_size", "examples", "batch size", "of this update"));
  }
  return table;
}

Table layers_table(const std::vector<ParameterInfo>& parameters, int64_t every,
                   const std::string& trust_ratio_definition) {
  Table table;
  table.name = "layers";
  table.long_name = fmt::format("norms by parameter: the first update, every {}. and the last", every);
  table.attributes = {{"every", every}};
  table.columns = {column("update", "1", "updates done", "number of this update, from 1")};
  const auto by_parameter = [&](const std::string& name, const std::string& units,
                                const std::string& long_name, const std::string& definition) {
    table.columns.push_back({name, units, long_name, definition, static_cast<int64_t>(parameters.size()),
                             names_of_parameters(parameters)});
  };
  by_parameter("weight_norm", "weight", "weight norm by parameter", "Euclidean norm before the update");
  by_parameter("gradient_norm", "loss/weight", "gradient norm by parameter", kGradientNormDefinition);
  by_parameter("update_norm", "weight", "update norm by parameter",
               "Euclidean norm of the change by the optimiser");
  by_parameter(
      "trust_ratio", "1", "trust ratio by parameter",
      trust_ratio_definition.empty() ? "NaN: the method has no trust ratios" : trust_ratio_definition);
  return table;
}

Table eval_table(LossKind loss) {
  Table table;
  table.name = "eval";
  table.long_name = "evaluation in eval mode; NaN where a split was not evaluated";
  const auto score = [&](const std::string& split) {
    table.columns.push_back(
        column(split + "_loss", units_of(loss), split + " loss", "mean loss over the " + split + " split"));
    table.columns.push_back(column(split + "_acc", "1", split + " accuracy",
                                   "share of the " + split + " split classified right"));
  };
  table.columns = {column("update", "1", "updates done", "updates before this evaluation"),
                   column("examples", "examples", "examples seen", kExamplesDefinition),
                   column("gradients", "gradients", "image gradients computed", kGradientsDefinition)};
  score("train");
  score("validation");
  score("test");
  table.columns.push_back(column("seconds", "s", "wall time", "of the run, checks and evaluations included"));
  return table;
}

int64_t layers_every(const TrainOptions& options, int64_t total_updates) {
  if (options.layers_every > 0) return options.layers_every;
  return std::max<int64_t>(1, (total_updates + kLayersRows - 1) / kLayersRows);
}

int64_t norms_every(int64_t weights, int64_t layers_every) {
  return weights <= kNormsAtEveryUpdate ? 1 : layers_every;
}

bool has_layers_row(int64_t update, int64_t every) { return update == 1 || update % every == 0; }

void fill_train_row(const UpdateRecord& r, const TrainOptions& options, std::vector<double>& row) {
  row.assign({static_cast<double>(r.update), r.loss, r.learning_rate, r.gradient_norm, r.update_norm,
              r.weight_norm, r.distance_from_start, static_cast<double>(r.examples),
              static_cast<double>(r.gradients), r.seconds});
  row.insert(row.end(), r.hook_values.begin(), r.hook_values.end());
  if (has_batch_sizes(options)) row.push_back(static_cast<double>(r.batch_size));
}

void fill_layers_row(const UpdateRecord& r, std::vector<double>& row) {
  row.assign({static_cast<double>(r.update)});
  append_each(row, *r.parameters, &ParameterStep::weight_norm);
  append_each(row, *r.parameters, &ParameterStep::gradient_norm);
  append_each(row, *r.parameters, &ParameterStep::update_norm);
  append_each(row, *r.parameters, &ParameterStep::trust_ratio);
}

void fill_eval_row(const EvaluationRecord& r, std::vector<double>& row) {
  row.assign({static_cast<double>(r.update), static_cast<double>(r.examples),
              static_cast<double>(r.gradients), r.train_loss, r.train_accuracy, r.validation_loss,
              r.validation_accuracy, r.test_loss, r.test_accuracy, r.seconds});
}

std::vector<ParameterRow> parameter_rows(const std::vector<ParameterInfo>& parameters) {
  std::vector<ParameterRow> rows;
  int64_t offset = 0;
  for (const ParameterInfo& parameter : parameters) {
    rows.push_back({parameter.name, parameter.layer, to_string(parameter.kind),
                    parameter.tensor.sizes().vec(), offset, parameter.tensor.numel()});
    offset += parameter.tensor.numel();
  }
  return rows;
}

}  // namespace basin
