#include "runs/audit/file.h"

#include "io/schema.h"

namespace basin {
namespace {

void add(h5::Group& group, const std::vector<AuditRow>& rows, const std::string& name,
         const std::string& long_name, const std::function<std::string(const AuditRow&)>& field) {
  std::vector<std::string> texts;
  for (const AuditRow& row : rows) texts.push_back(field(row));
  h5::DataSet dataset = group.write_texts(name, texts);
  describe(dataset, "", long_name, "audit");
}

void add(h5::Group& group, const std::vector<AuditRow>& rows, const std::string& name,
         const std::string& long_name, const std::function<double(const AuditRow&)>& field) {
  std::vector<double> numbers;
  for (const AuditRow& row : rows) numbers.push_back(field(row));
  h5::DataSet dataset = group.write(name, numbers);
  describe(dataset, "", long_name, "audit");
}

using Text = std::function<std::string(const AuditRow&)>;
using Number = std::function<double(const AuditRow&)>;

}  // namespace

void write_audit_file(const std::string& path, const AuditFile& audit) {
  h5::File file = create_schema_file(path, kAuditSchema);
  for (const auto& [name, value] : audit.attributes) file.set_attribute(name, value);
  h5::Group group = file.create_group("audit");
  const std::vector<AuditRow>& rows = audit.rows;
  add(group, rows, "probe", "probe", Text([](const AuditRow& r) { return r.probe; }));
  add(group, rows, "settings", "options that differ from the probe's others; empty: none",
      Text([](const AuditRow& r) { return r.settings; }));
  add(group, rows, "quantity", "name of the number", Text([](const AuditRow& r) { return r.quantity; }));
  add(group, rows, "definition", "anchor in docs/probes.md",
      Text([](const AuditRow& r) { return r.definition; }));
  add(group, rows, "transformation", "of the weights",
      Text([](const AuditRow& r) { return r.transformation; }));
  add(group, rows, "kind", "what the transformation leaves: function or decisions",
      Text([](const AuditRow& r) { return to_string(r.kind); }));
  add(group, rows, "verdict", "invariant, within_error, moved or unresolved",
      Text([](const AuditRow& r) { return to_string(r.verdict); }));
  add(group, rows, "strength", "factor of the transformation",
      Number([](const AuditRow& r) { return r.strength; }));
  add(group, rows, "before", "value of the network as it is",
      Number([](const AuditRow& r) { return r.before.value; }));
  add(group, rows, "after", "value of the transformed network",
      Number([](const AuditRow& r) { return r.after.value; }));
  add(group, rows, "uncertainty_before", "uncertainty of before",
      Number([](const AuditRow& r) { return r.before.uncertainty; }));
  add(group, rows, "uncertainty_after", "uncertainty of after",
      Number([](const AuditRow& r) { return r.after.uncertainty; }));
  add(group, rows, "ratio", "after / before", Number([](const AuditRow& r) { return r.ratio(); }));
  file.create_group("provenance").set_attributes(text_attributes(audit.provenance));
  file.save();
}

}  // namespace basin
