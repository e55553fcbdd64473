#include "io/probe_file.h"

#include "core/error.h"
#include "io/schema.h"

namespace basin {
namespace {

/// Root attributes that are fields of ProbeRecord; all others are the probe's own.
const std::vector<std::pair<const char*, std::string ProbeRecord::*>>& fields() {
  static const std::vector<std::pair<const char*, std::string ProbeRecord::*>> table{
      {"run_id", &ProbeRecord::run_id}, {"config_id", &ProbeRecord::config_id},
      {"probe", &ProbeRecord::probe},   {"checkpoint", &ProbeRecord::checkpoint},
      {"status", &ProbeRecord::status}, {"message", &ProbeRecord::message}};
  return table;
}

bool is_field(const std::string& name) {
  const auto same = [&](const auto& field) { return name == field.first; };
  return name == "schema_name" || name == "schema_version" ||
         std::any_of(fields().begin(), fields().end(), same);
}

void write_quantity(h5::Group& quantities, const ProbeQuantity& quantity) {
  h5::Group group = quantities.create_group(quantity.name);
  group.set_attribute("definition", quantity.definition);
  group.set_attribute("units", quantity.units);
  group.set_attribute("long_name", quantity.long_name);
  group.set_attribute("uncertainty_kind", quantity.uncertainty_kind);
  group.set_attribute("status", quantity.status);
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
  add("uncertainty", quantity.uncertainty, quantity.uncertainty_kind + " of " + quantity.long_name);
  add("ci_low", quantity.ci_low, "lower end of the 95 % interval of " + quantity.long_name);
  add("ci_high", quantity.ci_high, "upper end of the 95 % interval of " + quantity.long_name);
  if (quantity.entry_status.empty()) return;
  TORCH_CHECK(quantity.entry_status.size() == quantity.value.size(), "entry_status of ", quantity.name,
              " has another length than its value");
  h5::DataSet status = group.write_texts("entry_status", quantity.entry_status);
  describe(status, "", "status of each entry", quantity.definition);
  status.attach_scale(0, index);
}

ProbeQuantity read_quantity(const h5::Group& group, const std::string& name) {
  const auto optional = [&](const char* dataset) {
    return group.has(dataset) ? group.dataset(dataset).read<double>() : std::vector<double>{};
  };
  ProbeQuantity quantity;
  quantity.name = name;
  quantity.definition = group.attribute_as<std::string>("definition");
  quantity.units = group.attribute_as<std::string>("units");
  quantity.long_name = group.attribute_as<std::string>("long_name");
  quantity.uncertainty_kind = group.attribute_as<std::string>("uncertainty_kind");
  quantity.status = group.attribute_as<std::string>("status");
  quantity.value = group.dataset("value").read<double>();
  quantity.uncertainty = optional("uncertainty");
  quantity.ci_low = optional("ci_low");
  quantity.ci_high = optional("ci_high");
  quantity.entry_status = group.has("entry_status")
                              ? group.dataset("entry_status").read_texts()
                              : std::vector<std::string>(quantity.value.size(), quantity.status);
  quantity.is_vector =
      group.has_attribute("is_vector") ? group.attribute_as<bool>("is_vector") : quantity.value.size() > 1;
  return quantity;
}

}  // namespace

std::string entry_name(const std::string& quantity, bool is_vector, size_t index) {
  return is_vector ? fmt::format("{}_{}", quantity, index + 1) : quantity;
}

void write_probe_file(const std::string& path, const ProbeRecord& record) {
  h5::File file = create_schema_file(path, kProbeSchema);
  for (const auto& [name, field] : fields()) file.set_attribute(name, record.*field);
  for (const auto& [name, value] : record.attributes) {
    TORCH_CHECK(!is_field(name), "a probe's attribute cannot be called ", name);
    file.set_attribute(name, value);
  }
  h5::Group quantities = file.create_group("quantities");
  for (const ProbeQuantity& quantity : record.quantities) write_quantity(quantities, quantity);
  file.create_group("provenance").set_attributes(text_attributes(record.provenance));
  if (record.next_start.defined()) {
    h5::DataSet start = file.write_tensor("next_start", record.next_start.detach().cpu().contiguous());
    describe(start, "1", "sum of the eigenvectors found, where the next checkpoint's search starts",
             "warm-start");
  }
  file.save();
}

ProbeRecord read_probe_file(const std::string& path) {
  const h5::File file = open_schema_file(path, kProbeSchema);
  ProbeRecord record;
  for (const auto& [name, field] : fields()) record.*field = file.attribute_as<std::string>(name);
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

at::Tensor read_next_start(const std::string& path) {
  const h5::File file = open_schema_file(path, kProbeSchema);
  return file.has("next_start") ? file.dataset("next_start").read_tensor() : at::Tensor();
}

}  // namespace basin
