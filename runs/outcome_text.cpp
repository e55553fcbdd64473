#include "runs/outcome_text.h"

#include "core/error.h"
#include "core/math/nan.h"
#include "io/run_file.h"

namespace basin {
namespace {

double summary_number(const RunRecord& record, const std::string& name) {
  for (const auto& [key, value] : record.summary)
    if (key == name) return as_number(value);
  return kNaN;
}

}  // namespace

std::string outcome_text(const std::string& run_folder, const RunStatus& status) {
  std::string text;
  try {
    const RunRecord record = read_run_file(run_folder + "/run.h5");
    const double loss = summary_number(record, "train_loss"), accuracy = summary_number(record, "test_acc");
    if (std::isfinite(loss)) text += fmt::format("  training loss {:.4g}", loss);
    if (std::isfinite(accuracy)) text += fmt::format(", test accuracy {:.1f} %", 100 * accuracy);
    if (summary_number(record, "overshot") > 0) text += ", overshot the target";
  } catch (const IoError&) {  // whoever collects the runs says what is wrong with the file
  }
  return status.message.empty() ? text : text + "  (" + status.message + ")";
}

}  // namespace basin
