#include "sweep/collect/probe_table.h"

#include "sweep/collect/columns.h"

namespace basin {
namespace {

constexpr std::string_view kOption = "option.";

/// What a probe's measurements were asked for differently.
class DifferingOptions {
 public:
  explicit DifferingOptions(const std::vector<SweepRow>& rows) {
    for (const SweepRow& row : rows)
      for (const auto* probes : {&row.probes, &row.extra_probes})
        for (const ProbeRecord& probe : *probes) note(probe);
  }

  /// `layer = "conv1", count = 2`; empty where all measurements of the probe have the same options.
  std::string text(const ProbeRecord& probe) const {
    const std::map<std::string, std::set<std::string>>& asked = values_.at(probe.probe);
    std::string text;
    for (const auto& [key, value] : options_of(probe))
      if (asked.at(key).size() > 1) text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", key, value);
    return text;
  }

 private:
  static std::map<std::string, std::string> options_of(const ProbeRecord& probe) {
    std::map<std::string, std::string> options;
    for (const auto& [name, value] : probe.attributes)
      if (name.starts_with(kOption)) options[name.substr(kOption.size())] = to_toml(value);
    return options;
  }
  void note(const ProbeRecord& probe) {
    std::map<std::string, std::set<std::string>>& asked = values_[probe.probe];
    for (const auto& [key, value] : options_of(probe)) asked[key].insert(value);
  }

  std::map<std::string, std::map<std::string, std::set<std::string>>> values_;  // probe, key, TOML
};

/// The columns, one row per number.
class ProbeTable {
 public:
  explicit ProbeTable(const std::vector<SweepRow>& rows) : options_(rows) {
    for (const SweepRow& row : rows) {
      for (const ProbeRecord& probe : row.probes) add(row.run_id, probe, true);
      for (const ProbeRecord& probe : row.extra_probes) add(row.run_id, probe, false);
    }
  }

  bool empty() const { return indices_.empty(); }

  void write(h5::Group& group) {
    h5::DataSet scale = group.write_texts("run_id", texts_.at("run_id"));
    describe(scale, with_run_meanings({}).at("run_id"));
    scale.make_scale("run_id");
    texts_.erase("run_id");
    finish(group.write("index", indices_), scale, "index");
    h5::DataSet of_study = group.write("study", of_study_);
    of_study.set_attribute("type", std::string("bool"));
    finish(std::move(of_study), scale, "study");
    for (const auto& [name, column] : texts_) finish(group.write_texts(name, column), scale, name);
    for (const auto& [name, column] : numbers_) finish(group.write(name, column), scale, name);
  }

 private:
  void add(const std::string& run_id, const ProbeRecord& probe, bool of_study) {
    const std::string options = options_.text(probe);
    for (const Quantity& quantity : probe.quantities) {
      for (size_t i = 0; i < quantity.value.size(); ++i) {
        add_texts(run_id, probe, quantity, i);
        texts_["options"].push_back(options);
        add_numbers(probe, quantity, i);
        indices_.push_back(static_cast<int64_t>(i));
        of_study_.push_back(of_study);
      }
    }
  }

  void add_texts(const std::string& run_id, const ProbeRecord& probe, const Quantity& quantity, size_t i) {
    texts_["run_id"].push_back(run_id);
    texts_["checkpoint"].push_back(probe.checkpoint);
    texts_["probe"].push_back(probe.probe);
    texts_["quantity"].push_back(quantity.name);
    texts_["entry"].push_back(entry_name(quantity.name, quantity.is_vector, i));
    texts_["uncertainty_kind"].emplace_back(to_string(quantity.uncertainty_kind));
    texts_["status"].emplace_back(to_string(quantity.status_of(i)));
    texts_["definition"].push_back(quantity.definition);
    texts_["units"].push_back(quantity.units);
    for (const std::string key : {"subset_hash", "settings"})
      texts_[key].push_back(probe_attribute_text(probe, key));
  }

  void add_numbers(const ProbeRecord& probe, const Quantity& quantity, size_t i) {
    const auto entry = [i](const std::vector<double>& values) { return i < values.size() ? values[i] : NAN; };
    for (const std::string key : {"update", "train_loss", "subset_loss", "n_examples"})
      numbers_[key].push_back(probe_attribute(probe, key));
    numbers_["value"].push_back(quantity.value[i]);
    numbers_["uncertainty"].push_back(entry(quantity.uncertainty));
    numbers_["ci_low"].push_back(entry(quantity.ci_low));
    numbers_["ci_high"].push_back(entry(quantity.ci_high));
  }

  static void finish(h5::DataSet data, const h5::DataSet& scale, const std::string& name) {
    const bool loss = name == "train_loss" || name == "subset_loss";
    describe(data, {loss ? "nat" : name == "update" ? "updates" : "", name, "probe-table"});
    data.attach_scale(0, scale);
  }

  DifferingOptions options_;
  std::map<std::string, std::vector<std::string>> texts_;
  std::map<std::string, std::vector<double>> numbers_;
  std::vector<int64_t> indices_;
  std::vector<uint8_t> of_study_;
};

}  // namespace

void write_probe_table(h5::File& file, const std::vector<SweepRow>& rows) {
  ProbeTable table(rows);
  if (table.empty()) return;
  h5::Group group = file.create_group("probes");
  group.set_attribute("long_name", std::string("one row per number that a probe gave, at any checkpoint"));
  table.write(group);
}

}  // namespace basin
