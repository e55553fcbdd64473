#include "apps/output/contrast_plan.h"

#include "sweep/cost_model.h"

namespace basin {
namespace {

// A setting without its seed, and without what is still to be chosen.
std::string setting_text(const PlannedContrast& planned, const PickedSetting& setting) {
  const Cell& cell = *setting.cells.front();
  const bool open = planned.rates_open && !cell.candidate.values.empty();
  return open ? cell.group : cell.label.substr(0, cell.label.rfind(" seed "));
}

bool can_be_counted(const PlannedContrast& planned) {
  return planned.pilot.has_value() && !std::isnan(planned.margin);
}

std::string needed_text(const PlannedContrast& planned) {
  if (!can_be_counted(planned)) return "-";
  return planned.needed > 0 ? std::to_string(planned.needed) : fmt::format("more than {}", kMostSeeds);
}

// 1 where the outcome has no images.
int64_t images_of(const Contrast& contrast, const Cell& cell) {
  if (contrast.outcome != "test_acc" && contrast.outcome != "test_loss") return 1;
  std::string message;
  return std::max<int64_t>(1, split_sizes(cell.options.data, message).test);
}

}  // namespace

std::vector<PlannedContrast> plan_contrasts(const Study& study, const std::vector<Cell>& cells,
                                            const std::string& pilot_folder) {
  std::optional<Pilot> pilot;
  if (!pilot_folder.empty()) pilot.emplace(pilot_folder + "/verdicts.h5");
  std::vector<PlannedContrast> planned;
  for (ContrastCells& found : cells_of_contrasts(study, cells)) {
    PlannedContrast& next = planned.emplace_back();
    next.cells = std::move(found);
    const Contrast& contrast = *next.cells.contrast;
    next.margin = margin_of(contrast, study.hypotheses);
    next.rates_open = study.tuning.enabled;
    if (!pilot) continue;
    next.images = images_of(contrast, *next.cells.settings.front().cells.front());
    next.pilot = pilot->of(contrast, study.contrasts);
    if (can_be_counted(next))
      next.needed = seeds_needed(*next.pilot, next.images, asked_of(contrast, study.hypotheses));
  }
  return planned;
}

void print(const std::vector<PlannedContrast>& contrasts) {
  if (contrasts.empty()) return;
  size_t name = 8, outcome = 7;
  for (const PlannedContrast& planned : contrasts) {
    name = std::max(name, planned.cells.contrast->name.size());
    outcome = std::max(outcome, planned.cells.contrast->outcome.size());
  }
  fmt::print("{:{}} {:{}} {:8} {:10} {:>5} {:>6}  {}\n", "contrast", name, "outcome", outcome, "at", "scale",
             "seeds", "margin", "seeds needed");
  for (const PlannedContrast& planned : contrasts) {
    const Contrast& c = *planned.cells.contrast;
    fmt::print("{:{}} {:{}} {:8} {:10} {:>5} {:>6}  {}{}\n", c.name, name, c.outcome, outcome, c.at, c.scale,
               planned.cells.paired_seeds.size(),
               std::isnan(planned.margin) ? "-" : fmt::format("{:g}", planned.margin), needed_text(planned),
               planned.pilot && planned.pilot->source != c.name
                   ? fmt::format(" (variances of {})", planned.pilot->source)
                   : "");
    for (const PickedSetting& setting : planned.cells.settings)
      fmt::print("  {:5} {}\n", setting.role, setting_text(planned, setting));
    if (!planned.cells.also_differs.empty()) fmt::print("  also differs: {}\n", planned.cells.also_differs);
  }
  fmt::print(
      "seeds: those that both sides of a contrast have\n"
      "seeds needed: for a verdict in 4 studies of 5 where the effect is as large as the margin (where 0, if "
      "`equivalent` is expected), after Holm's correction\n");
}

Json json_of(const std::vector<PlannedContrast>& contrasts) {
  Json array = Json::array();
  for (const PlannedContrast& planned : contrasts) {
    const Contrast& c = *planned.cells.contrast;
    Json settings = Json::array();
    for (const PickedSetting& setting : planned.cells.settings) {
      Json runs = Json::array();
      for (const Cell* cell : setting.cells) runs.push_back(cell->run_id);
      settings.push_back(
          {{"role", setting.role}, {"label", setting_text(planned, setting)}, {"runs", std::move(runs)}});
    }
    const bool counted = can_be_counted(planned);
    array.push_back({{"name", c.name},
                     {"outcome", c.outcome},
                     {"at", c.at},
                     {"scale", c.scale},
                     {"settings", std::move(settings)},
                     {"paired_seeds", planned.cells.paired_seeds},
                     {"also_differs", planned.cells.also_differs},
                     {"margin", planned.margin},
                     {"pilot", planned.pilot ? Json(planned.pilot->source) : Json()},
                     {"seeds_needed", counted && planned.needed > 0 ? Json(planned.needed) : Json()},
                     {"beyond_most_seeds", counted && planned.needed == 0}});
  }
  return array;
}

}  // namespace basin
