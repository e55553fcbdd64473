#include "optim/kernels/multi_tensor.h"

#include "core/math/tensor_norms.h"
#include "optim/kernels/cpu_passes.h"
#include "optim/kernels/kernel_tables.h"

namespace basin {
namespace {

bool on_gpu(const TensorLists& lists) { return !lists.weights.empty() && lists.weights.front().is_cuda(); }

bool has_clean(const TensorLists& lists) { return !lists.clean_gradients.empty(); }

void tables_for(const TensorLists& lists, const std::vector<Treatment>& treatments,
                std::shared_ptr<KernelTables>& tables) {
  TORCH_CHECK(!has_clean(lists), "clean gradients on a GPU: steps can't be normalised by them there");
  if (!tables) tables = std::make_shared<KernelTables>();
  tables->set(lists, treatments);
}

/// What normalises a step is of these.
TensorLists clean_lists(const TensorLists& lists) {
  return {.weights = lists.weights,
          .gradients = lists.clean_gradients,
          .first = lists.clean_first.empty() ? lists.first : lists.clean_first,
          .second = lists.second};
}

/// Those that the last pass has to take; `measured`: another took weight and gradient before.
Norms norms_left(const StepScalars& step, bool measured) {
  if (!step.norms) return Norms::none;
  return measured ? Norms::change : Norms::all;
}

/// With what the last pass saw.
void complete(StepReport& report, const PassSums& last, bool measured) {
  if (!measured) report.sums = last;
  for (size_t i = 0; i < last.size(); ++i) report.sums[i].change = last[i].change;
}

/// The second moment, and the first one's clean twin where there is one; leaves to `elements` the first moment alone, by exact
/// factors of 1 and 0.
PassSums advance_clean_moments(const TensorLists& lists, MomentElements& elements) {
  MomentElements clean = elements;
  if (lists.clean_first.empty())
    for (MomentElement<double>& element : clean) element.beta1 = 1, element.new1 = 0;
  for (MomentElement<double>& element : elements) element.beta2 = 1, element.new2 = 0;
  return advance_moments(clean_lists(lists), clean);
}

}  // namespace

std::vector<double> stepped_ratios(const std::vector<double>& live,
                                   const std::vector<Treatment>& treatments) {
  std::vector<double> ratios;
  const auto n = static_cast<int64_t>(live.size());
  for (int64_t i = 0; i < n; ++i) {
    ratios.push_back(
        stepped_ratio(treatments.data(), n, i, [&](int64_t j) { return live[static_cast<size_t>(j)]; }));
  }
  return ratios;
}

StepReport momentum_step(const MomentumRule& rule, const StepScalars& step,
                         const std::vector<Treatment>& treatments, const TensorLists& lists,
                         std::shared_ptr<KernelTables>& tables) {
  if (on_gpu(lists)) {
    tables_for(lists, treatments, tables);
    momentum_kernels(rule, step, *tables);
    return {};
  }
  const size_t n = lists.weights.size();
  StepReport report{PassSums(n), std::vector<double>(n, 1)};
  PassSums norms(n);  // that ratios are of
  MomentumElements elements(n);
  const auto coefficients = [&] {
    for (size_t i = 0; i < n; ++i)
      elements[i] = rule.element(report.ratios[i], norms[i], treatments[i], step);
  };
  if (rule.adaptive) {
    coefficients();  // with ratio 1: what a gradient's decay is, and how a buffer is filled that holds no ratio
    const auto measured = [&](const TensorLists& of) {
      return rule.buffer_first() ? fill_buffer(of, elements) : measure(of, elements);
    };
    report.sums = measured(lists);
    norms = has_clean(lists) ? measured(clean_lists(lists)) : report.sums;
    for (size_t i = 0; i < n; ++i) report.ratios[i] = rule.ratio(norms[i], treatments[i], step);
    report.ratios = stepped_ratios(report.ratios, treatments);
  }
  coefficients();
  if (rule.buffer_first()) {
    for (MomentumElement<double>& element : elements) element.keep = 1, element.add = 0;
  }
  const PassSums updated = update_momentum(lists, elements, norms_left(step, rule.adaptive));
  complete(report, updated, rule.adaptive);
  return report;
}

StepReport moment_step(const MomentRule& rule, StepScalars step, const std::vector<Treatment>& treatments,
                       const TensorLists& lists, std::shared_ptr<KernelTables>& tables) {
  if (on_gpu(lists)) {
    tables_for(lists, treatments, tables);
    moment_kernels(rule, step, *tables);
    return {};
  }
  const size_t n = lists.weights.size();
  StepReport report{PassSums(n), std::vector<double>(n, 1)};
  const bool clean = has_clean(lists);
  if (rule.needs_gradient_norm())
    step.gradient_norm = std::sqrt(squared_norm(clean ? lists.clean_gradients : lists.gradients));
  MomentElements elements(n);
  for (size_t i = 0; i < n; ++i) elements[i] = rule.element(1, treatments[i], step);
  const PassSums of_clean = clean ? advance_clean_moments(lists, elements) : PassSums();
  if (!rule.adaptive) {
    complete(report, update_moments(lists, elements, norms_left(step, false)), false);
    return report;
  }
  report.sums = advance_moments(lists, elements);
  const PassSums& norms = clean ? of_clean : report.sums;
  for (size_t i = 0; i < n; ++i) report.ratios[i] = rule.ratio(norms[i], treatments[i], step);
  report.ratios = stepped_ratios(report.ratios, treatments);
  for (size_t i = 0; i < n; ++i) elements[i] = rule.element(report.ratios[i], treatments[i], step);
  complete(report, apply_moments(lists, elements, norms_left(step, true)), true);
  return report;
}

StepReport sign_step(const SignRule& rule, const StepScalars& step, const std::vector<Treatment>& treatments,
                     const TensorLists& lists, std::shared_ptr<KernelTables>& tables) {
  if (on_gpu(lists)) {
    tables_for(lists, treatments, tables);
    sign_kernels(rule, step, *tables);
    return {};
  }
  const size_t n = lists.weights.size();
  StepReport report{PassSums(n), std::vector<double>(n, 1)};
  SignElements elements(n);
  for (size_t i = 0; i < n; ++i) elements[i] = rule.element(treatments[i], step);
  complete(report, update_signs(lists, elements, norms_left(step, false)), false);
  return report;
}

StepReport last_report(KernelTables& tables) {
  const at::Tensor rows = kernel_report(tables);
  StepReport report;
  for (int64_t i = 0; i < rows.size(0); ++i) {
    const double* row = rows.const_data_ptr<double>() + rows.size(1) * i;
    report.sums.push_back({row[0], row[1], row[2], row[3]});
    report.ratios.push_back(row[4]);
  }
  return report;
}

double squared_distance(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b,
                        std::shared_ptr<KernelTables>& tables) {
  double sum = 0;
  const TensorLists lists{a, b, {}, {}};
  if (on_gpu(lists)) {
    tables_for(lists, std::vector<Treatment>(a.size()), tables);
    difference_kernel(*tables);
    for (const TensorSums& sums : last_report(*tables).sums) sum += sums.change;
    return sum;
  }
  for (size_t i = 0; i < a.size(); ++i) sum += squared_distance(a[i], b[i]);
  return sum;
}

}  // namespace basin
