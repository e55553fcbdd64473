#include "apps/study_compare.h"

#include "apps/probe_plan_text.h"
#include "core/hash.h"

namespace basin {

std::vector<std::string> fingerprints(const Study& study) {
  std::vector<std::string> prints;
  for (const Cell& cell : expand(study)) {
    std::string text = cell.run_id + "\n" + probe_plan_text(cell.options);
    if (study.selection.enabled)
      text += fmt::format("selection seeds {}", fmt::join(study.selection.seeds, " "));
    prints.push_back(sha256_hex(text));
  }
  std::sort(prints.begin(), prints.end());
  return prints;
}

}  // namespace basin
