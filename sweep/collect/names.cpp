#include "sweep/collect/names.h"

#include <string>
#include <vector>

#include "data/registry.h"
#include "io/schema.h"
#include "models/registry.h"
#include "optim/registry.h"
#include "probes/registry.h"

namespace basin {
namespace {

using Texts = std::vector<std::string>;

void write_texts(h5::Group& group, const std::string& name, const Texts& texts,
                 const std::string& long_name) {
  h5::DataSet data = group.write_texts(name, texts);
  describe(data, "", long_name, "names-table");
}

template <class Entry>
void write_members(h5::Group& names, const std::string& name, const std::vector<Entry>& registry) {
  Texts labels;
  for (const Entry& entry : registry) labels.push_back(entry.label);
  h5::Group group = names.create_group(name);
  write_texts(group, "name", names_of(registry), "name in studies and files");
  write_texts(group, "label", labels, "name in tables and figures");
}

/// Its column in /runs behind the probe's name: of a vector its first entry. As the runs have it; the name where none has.
std::string column_of(const std::string& probe, const std::string& quantity,
                      const std::vector<SweepRow>& rows) {
  for (const SweepRow& row : rows) {
    for (const ProbeRecord& record : row.probes) {
      for (const Quantity& found : record.quantities)
        if (record.probe == probe && found.name == quantity) return entry_name(quantity, found.is_vector, 0);
    }
  }
  return quantity;
}

/// In the order of tables and figures: what stands in figures alone behind the others.
void write_measures(h5::Group& names, const std::vector<SweepRow>& rows) {
  Texts probe, quantity, column, heading, label;
  std::vector<uint8_t> companion;
  for (const bool in_figures_alone : {false, true}) {
    for (const ProbeEntry& entry : probe_registry()) {
      for (const ProbeHeadline& headline : entry.headlines) {
        if (headline.heading.empty() != in_figures_alone) continue;
        probe.push_back(entry.name);
        quantity.push_back(headline.quantity);
        column.push_back(column_of(entry.name, headline.quantity, rows));
        heading.push_back(headline.heading);
        label.push_back(headline.label);
        companion.push_back(in_figures_alone);
      }
    }
  }
  h5::Group group = names.create_group("measures");
  write_texts(group, "probe", probe, "probe that measures it");
  write_texts(group, "quantity", quantity, "name in /probes");
  write_texts(group, "column", column, "name in /runs, behind probe.<checkpoint>.<probe>.");
  write_texts(group, "heading", heading, "heading of a table's column");
  write_texts(group, "label", label, "label of an axis, with the unit");
  h5::DataSet flags = group.write("companion", companion);
  flags.set_attribute("type", std::string("bool"));
  describe(flags, "", "whether it stands in figures alone, as the companion of another", "names-table");
}

/// What all probes say, each once.
void write_ratios(h5::Group& names) {
  Texts ratio, numerator, denominator, copies;
  for (const ProbeEntry& entry : probe_registry()) {
    copies.insert(copies.end(), entry.copies.begin(), entry.copies.end());
    for (const ProbeRatio& r : entry.ratios) {
      if (std::find(ratio.begin(), ratio.end(), r.quantity) != ratio.end()) continue;
      ratio.push_back(r.quantity);
      numerator.push_back(r.numerator);
      denominator.push_back(r.denominator);
    }
  }
  h5::Group ratios = names.create_group("ratios");
  write_texts(ratios, "quantity", ratio, "a ratio of two means over runs");
  write_texts(ratios, "numerator", numerator, "quantity of the same probe");
  write_texts(ratios, "denominator", denominator, "quantity of the same probe");
  h5::Group group = names.create_group("copies");
  write_texts(group, "quantity", copies, "says what another quantity says");
}

}  // namespace

void write_names(h5::File& file, const std::vector<SweepRow>& rows) {
  h5::Group names = file.create_group("names");
  names.set_attribute("long_name", std::string("names, labels and order of what studies can name"));
  write_members(names, "optimizers", optimizer_registry());
  write_members(names, "models", model_registry());
  write_members(names, "data_sets", dataset_registry());
  write_members(names, "probes", probe_registry());
  write_measures(names, rows);
  write_ratios(names);
}

}  // namespace basin
