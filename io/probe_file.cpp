#include "io/probe_file.h"

#include "core/error.h"
#include "io/schema.h"

namespace basin {
namespace {

/// Root attributes that are the schema's or fields of ProbeRecord; all others are the probe's own.
bool is_field(const std::string& name) {
  static const std::set<std::string> fields = {"schema_name", "schema_version", "run_id", "config_id",
                                               "probe",       "checkpoint",     "status", "message"};
  return fields.count(name) > 0;
}

void write_fields(h5::File& file, const ProbeRecord& record) {
  file.set_attributes({{"run_id", record.run_id},
                       {"config_id", record.config_id},
                       {"probe", record.probe},
                       {"checkpoint", record.checkpoint},
                       {"status", std::string(to_string(record.status))},
                       {"message", record.message}});
}

void read_fields(const h5::File& file, ProbeRecord& record) {
  record.run_id = file.attribute_as<std::string>("run_id");
  record.config_id = file.attribute_as<std::string>("config_id");
  record.probe = file.attribute_as<std::string>("probe");
  record.checkpoint = file.attribute_as<std::string>("checkpoint");
  record.status = parse_probe_status(file.attribute_as<std::string>("status"), file.file());
  record.message = file.attribute_as<std::string>("message");
}

std::vector<std::string> entry_statuses(const Quantity& quantity) {
  TORCH_CHECK(quantity.entry_status.empty() || quantity.entry_status.size() == quantity.value.size(),
              "entry_status of ", quantity.name, " has another length than its value");
  std::vector<std::string> texts;
  for (size_t i = 0; i < quantity.value.size(); ++i) texts.emplace_back(to_string(quantity.status_of(i)));
  return texts;
}

void write_quantity(h5::Group& quantities, const Quantity& quantity) {
  h5::Group group = quantities.create_group(quantity.name);
  group.set_attribute("definition", quantity.definition);
  group.set_attribute("units", quantity.units);
  group.set_attribute("long_name", quantity.long_name);
  group.set_attribute("uncertainty_kind", std::string(to_string(quantity.uncertainty_kind)));
  group.set_attribute("status", std::string(to_string(quantity.status)));
  group.set_attribute("is_vector", quantity.is_vector || quantity.value.size() != 1);
  h5::DataSet index = write_index_scale(group, "index", static_cast<int64_t>(quantity.value.size()), "index");
  const auto add = [&](const char* name, const std::vector<double>& values, const std::string& long_name) {
    if (values.empty() && !quantity.value.empty()) return;  // not given
    TORCH_CHECK(values.size() == quantity.value.size(), name, " of ", quantity.name,
                " has another length than its value");
    h5::DataSet dataset = group.write(name, values);
    describe(dataset, quantity.units, long_name, quantity.definition);
    dataset.attach_scale(0, index);
  };
  add("value", quantity.value, quantity.long_name);
  add("uncertainty", quantity.uncertainty,
      std::string(to_string(quantity.uncertainty_kind)) + " of " + quantity.long_name);
  add("ci_low", quantity.ci_low, "lower end of the 95 % interval of " + quantity.long_name);
  add("ci_high", quantity.ci_high, "upper end of the 95 % interval of " + quantity.long_name);
  if (quantity.value.empty()) return;
  h5::DataSet status = group.write_texts("entry_status", entry_statuses(quantity));
  describe(status, "", "status of each entry", quantity.definition);
  status.attach_scale(0, index);
}

Quantity read_quantity(const h5::Group& group, const std::string& name) {
  const auto optional = [&](const char* dataset) {
    return group.has(dataset) ? group.dataset(dataset).read<double>() : std::vector<double>{};
  };
  Quantity quantity;
  quantity.name = name;
  quantity.definition = group.attribute_as<std::string>("definition");
  quantity.units = group.attribute_as<std::string>("units");
  quantity.long_name = group.attribute_as<std::string>("long_name");
  quantity.uncertainty_kind =
      parse_uncertainty_kind(group.attribute_as<std::string>("uncertainty_kind"), group.file());
  quantity.status = parse_probe_status(group.attribute_as<std::string>("status"), group.file());
  quantity.value = group.dataset("value").read<double>();
  quantity.uncertainty = optional("uncertainty");
  quantity.ci_low = optional("ci_low");
  quantity.ci_high = optional("ci_high");
  if (group.has("entry_status")) {
    for (const std::string& text : group.dataset("entry_status").read_texts())
      quantity.entry_status.push_back(parse_probe_status(text, group.file()));
  }
  quantity.is_vector =
      group.has_attribute("is_vector") ? group.attribute_as<bool>("is_vector") : quantity.value.size() > 1;
  return quantity;
}

}  // namespace

void write_probe_file(const std::string& path, const ProbeRecord& record) {
  h5::File file = create_schema_file(path, kProbeSchema);
  write_fields(file, record);
  for (const auto& [name, value] : record.attributes) {
    TORCH_CHECK(!is_field(name), "a probe's attribute cannot be called ", name);
    file.set_attribute(name, value);
  }
  h5::Group quantities = file.create_group("quantities");
  for (const Quantity& quantity : record.quantities) write_quantity(quantities, quantity);
  file.create_group("provenance").set_attributes(text_attributes(record.provenance));
  file.save();
}

ProbeRecord read_probe_file(const std::string& path) {
  const h5::File file = open_schema_file(path, kProbeSchema);
  ProbeRecord record;
  read_fields(file, record);
  for (auto& [name, value] : file.attributes()) {
    if (!is_field(name)) record.attributes.emplace_back(name, std::move(value));
  }
  const h5::Group quantities = file.group("quantities");
  for (const std::string& name : quantities.group_names()) {
    record.quantities.push_back(read_quantity(quantities.group(name), name));
  }
  record.provenance = texts_of(file.group("provenance").attributes());
  return record;
}

}  // namespace basin
