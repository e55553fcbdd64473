#include "sweep/collect/table.h"

#include "core/messages.h"
#include "core/nearest.h"
#include "io/enum_names.h"
#include "probes/registry.h"
#include "study/arms.h"
#include "study/run_options.h"
#include "study/values.h"
#include "trainers/train_options.h"

namespace basin {
namespace {

/// A column of the table: heading, and the text for the comparable runs of a line.
struct TableColumn {
  std::string heading;
  std::function<std::string(const RowList&)> text;
};

std::vector<double> numbers(const RowList& rows, const std::string& column, double factor = 1.0) {
  std::vector<double> values;
  for (const SweepRow* row : rows) values.push_back(factor * row->number(column));
  return values;
}

TableColumn plain(const std::string& heading, const std::string& column, double factor = 1.0) {
  return {heading, [=](const RowList& rows) { return mean_and_error(numbers(rows, column, factor)); }};
}

std::vector<TableColumn> columns_of(const std::string& protocol) {
  std::vector<TableColumn> columns = {plain("test accuracy, %", "test_acc", 100),
                                      plain("training loss", "train_loss")};
  if (protocol_named(protocol) != Protocol::matched_loss) {
    columns.push_back(plain("updates", "updates"));
    return columns;
  }
  columns.push_back(plain("updates to target", "steps_to_target"));
  for (const ProbeEntry& probe : probe_registry()) {
    for (const ProbeHeadline& headline : probe.headlines) {
      if (headline.heading.empty()) continue;
      columns.push_back({headline.heading, [&probe, &headline](const RowList& runs) {
                           return probe_text(runs, probe, headline.quantity);
                         }});
    }
  }
  return columns;
}

std::string heading_of(const std::string& protocol) {
  if (protocol.empty()) return "Runs without a configuration";
  std::string heading = "Protocol " + protocol;
  const std::optional<Protocol> known = protocol_named(protocol);
  if (!known) return heading;
  switch (*known) {
    case Protocol::epochs:
      return heading +
             ": the same number of epochs (a drop here is one of optimisation until shown otherwise)";
    case Protocol::updates:
      return heading + ": the same number of updates";
    case Protocol::matched_loss:
      return heading + ": stopped at the same training loss";
  }
  return heading;
}

/// How a run ended as the table counts it, in the order in which a line names them: those that enter means first.
enum class Outcome { finished, diverged, failed, interrupted, missed, not_begun, overshot, running };

Outcome outcome_of(const SweepRow& row) {
  switch (row.state()) {
    case RunState::queued:
      return Outcome::not_begun;
    case RunState::running:
      return Outcome::running;
    case RunState::interrupted:
      return Outcome::interrupted;
    case RunState::finished:
      return is_comparable(row) ? Outcome::finished : Outcome::overshot;
    case RunState::target_not_reached:
      return Outcome::missed;
    case RunState::diverged:
      return Outcome::diverged;
    case RunState::failed:
      return Outcome::failed;
  }
  throw std::logic_error("a run status that the table doesn't know");
}

const char* to_string(Outcome outcome) {
  static const EnumNames<Outcome> table("outcome", {{Outcome::finished, "finished"},
                                                    {Outcome::diverged, "diverged"},
                                                    {Outcome::failed, "failed"},
                                                    {Outcome::interrupted, "interrupted"},
                                                    {Outcome::missed, "missed the target"},
                                                    {Outcome::not_begun, "not begun"},
                                                    {Outcome::overshot, "overshot the target"},
                                                    {Outcome::running, "running"}});
  return table.text(outcome);
}

/// "5 finished", or "1 of 5 finished, 4 of 5 missed the target": how many seeds enter the means, and why not
/// the others.
std::string how_runs_ended(const RowList& rows) {
  std::map<Outcome, size_t> counts;
  for (const SweepRow* row : rows) ++counts[outcome_of(*row)];
  if (counts.size() == 1) return fmt::format("{} {}", rows.size(), to_string(counts.begin()->first));
  std::string text;
  for (const auto& [outcome, count] : counts)
    text += fmt::format("{}{} of {} {}", text.empty() ? "" : ", ", count, rows.size(), to_string(outcome));
  return text;
}

/// Where no run is comparable, the first column says why; the others stay empty.
std::string reason_for_nothing(const RowList& rows) {
  std::set<Outcome> outcomes;
  for (const SweepRow* row : rows) outcomes.insert(outcome_of(*row));
  std::vector<std::string> reasons;
  for (const Outcome outcome : outcomes) reasons.emplace_back(to_string(outcome));
  return fmt::format("*{}*", fmt::join(reasons, ", "));
}

// Seeds need other runs of their own, and those have one setting.
std::string column_of(const std::string& key) {
  if (key == "branch.from") return "branch.setting";
  if (key == "parallel.order") return "parallel.order_setting";
  return kAskedFor + key;
}

/// The options by which settings may be told apart, as far as the row has them.
Settings setting_of(const SweepRow& row, const std::vector<std::string>& keys) {
  Settings setting;
  for (const std::string& key : keys) {
    const OptionValue* asked = row.find(column_of(key));
    if (const OptionValue* value = asked ? asked : row.find(key)) setting.emplace_back(key, *value);
  }
  return setting;
}

std::vector<std::string> identity_keys() {
  const RunOptions scratch;
  std::vector<std::string> keys;
  for (const Option& option : scratch.table())
    if (option.traits.may_be_swept() && !option.traits.is_repetition && option.key != kRate)
      keys.push_back(option.key);
  return keys;
}

/// The options that get a column of their own.
std::vector<std::string> arms_of(const std::vector<SweepRow>& rows, const std::vector<std::string>& axes) {
  const std::vector<std::string> keys = identity_keys();
  std::vector<Settings> settings;
  std::set<std::string> known;
  for (const SweepRow& row : rows)
    if (known.insert(row.text("config_id")).second) settings.push_back(setting_of(row, keys));
  std::vector<std::string> arms = distinguishing_keys(settings, axes);
  // Sweeps that were merged may be of several networks or data sets, whether or not anything else tells their settings apart.
  for (const char* key : {"model", "data.set"}) {
    std::set<std::string> values;
    for (const Settings& setting : settings) values.insert(arm_text(setting, key));
    if (values.size() > 1 && !contains(arms, std::string(key))) arms.insert(arms.begin(), key);
  }
  return arms;
}

std::string table_line(const RowList& rows, const std::vector<TableColumn>& columns,
                       const std::vector<std::string>& arms) {
  const SweepRow& first = *rows.front();
  std::string line = fmt::format("| {:.0f} | {} |", first.number("batch_size"), first.text("optimizer"));
  const Settings setting = setting_of(first, arms);
  for (const std::string& arm : arms) line += fmt::format(" {} |", arm_text(setting, arm));
  line += fmt::format(" {:g} | {} |", first.number("learning_rate"), how_runs_ended(rows));
  RowList comparable;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(comparable),
               [](const SweepRow* row) { return is_comparable(*row); });
  for (size_t i = 0; i < columns.size(); ++i) {
    line += ' ';
    if (!comparable.empty())
      line += columns[i].text(comparable);
    else
      line += i == 0 ? reason_for_nothing(rows) : "–";
    line += " |";
  }
  return line + "\n";
}

std::string section(const std::string& protocol, const std::vector<SweepRow>& rows,
                    const std::vector<std::string>& arms) {
  std::map<std::tuple<double, std::string, std::string, double, std::string>, RowList> lines;
  for (const SweepRow& row : rows) {
    if (row.text("protocol") != protocol) continue;
    const Settings setting = setting_of(row, arms);
    lines[{row.number("batch_size"), row.text("optimizer"), setting.empty() ? "" : to_toml(setting),
           row.number("learning_rate"), row.text("config_id")}]
        .push_back(&row);
  }
  const std::vector<TableColumn> columns = columns_of(protocol);
  std::string text = fmt::format("\n## {}\n\n| batch size | optimiser |", heading_of(protocol));
  for (const std::string& arm : arms) text += fmt::format(" {} |", arm);
  text += " learning rate | runs |";
  for (const TableColumn& column : columns) text += fmt::format(" {} |", column.heading);
  text += "\n|---:|---|";
  for (size_t i = 0; i < arms.size(); ++i) text += "---|";
  text += "---:|---|";
  for (size_t i = 0; i < columns.size(); ++i) text += "---:|";
  text += '\n';
  for (const auto& [key, members] : lines) text += table_line(members, columns, arms);
  return text;
}

std::string distinct(const std::vector<SweepRow>& rows, const std::string& column) {
  std::set<std::string> values;
  for (const SweepRow& row : rows) {
    if (const OptionValue* value = row.find(column)) {
      const std::string* text = std::get_if<std::string>(value);
      values.insert(text ? *text : to_toml(*value));
    }
  }
  return values.empty() ? "unknown" : fmt::format("{}", fmt::join(values, ", "));
}

}  // namespace

bool is_comparable(const SweepRow& row) {
  if (row.state() != RunState::finished) return false;
  return protocol_named(row.text("protocol")) != Protocol::matched_loss || !(row.number("overshot") > 0);
}

std::string table_markdown(const std::vector<SweepRow>& rows, const std::vector<std::string>& axes) {
  std::set<std::string> protocols;
  for (const SweepRow& row : rows) protocols.insert(row.text("protocol"));
  std::string text = fmt::format(
      "# Sweep: {}\n\nData {} ({}), {} training and {} test examples; model {}. "
      "Mean ± standard error over seeds (n). Diverged runs, and under protocol B those that missed the "
      "target loss or fell "
      "below 0.8 of it, are counted under \"runs\" and enter no mean. Standard errors are over seeds alone; "
      "report.html adds the test examples' part. B_simple is that of the training set as it is "
      "(docs/probes.md#noise-scale-finite), the ratio of the means of tr Σ and |G|² over seeds with a 95 % "
      "interval by Fieller's theorem; a number of one run has that run's own uncertainty.\n",
      counted(rows.size(), "run"), distinct(rows, "dataset.name"), distinct(rows, "dataset.pixels"),
      distinct(rows, "dataset.n_train"), distinct(rows, "dataset.n_test"), distinct(rows, "model"));
  const std::vector<std::string> arms = arms_of(rows, axes);
  for (const std::string& protocol : protocols) text += section(protocol, rows, arms);
  return text;
}

}  // namespace basin
