// defines: the tables "train", "layers" and "eval" of a run, their columns and rows.
#pragma once

#include <string>
#include <vector>

#include "core/parameter.h"
#include "io/record.h"
#include "models/loss.h"
#include "trainers/observer.h"
#include "trainers/train_options.h"

namespace basin {

/// A column of one number per row.
Column column(const std::string& name, const std::string& units, const std::string& long_name,
              const std::string& definition);

/// One row per update. Hooks add columns, batch_milestones one.
Table train_table(const TrainOptions& options, const std::vector<Column>& of_hooks);
/// ParameterStep by parameter, at the updates that has_layers_row() says and, if it took norms, at the last one; `every` is an
/// attribute. Methods without trust ratios (`trust_ratio_definition` empty) have NaN there, and say so.
Table layers_table(const std::vector<ParameterInfo>& parameters, int64_t every,
                   const std::string& trust_ratio_definition);
Table eval_table(LossKind loss);

/// Updates between rows of "layers": options.layers_every, or what gives 100 to 200 rows where there are as
/// many updates.
int64_t layers_every(const TrainOptions& options, int64_t total_updates);
/// The first update and every k-th: those that are known without knowing which is the last.
bool has_layers_row(int64_t update, int64_t every);

/// Weights of the largest network whose every update takes norms. Those of larger ones take them at the rows of "layers", and at the
/// last of the budget; between these the norms of "train" are NaN.
inline constexpr int64_t kNormsAtEveryUpdate = 1 << 22;
/// What that makes of layers_every(): updates between those that take norms, as has_layers_row() counts.
int64_t norms_every(int64_t weights, int64_t layers_every);

/// Rows in the tables' column order; `row` is reused between calls.
void fill_train_row(const UpdateRecord& record, const TrainOptions& options, std::vector<double>& row);
/// For a record with norms.
void fill_layers_row(const UpdateRecord& record, std::vector<double>& row);
void fill_eval_row(const EvaluationRecord& record, std::vector<double>& row);

/// /params of run.h5, in parameter_table() order.
std::vector<ParameterRow> parameter_rows(const std::vector<ParameterInfo>& parameters);

}  // namespace basin
