#include "apps/table.h"

namespace basin {
namespace {

using Rows = std::vector<const SweepRow*>;

/// A column of the table: heading, and the text for the comparable runs of a line.
struct TableColumn {
  std::string heading;
  std::function<std::string(const Rows&)> text;
};

std::vector<double> numbers(const Rows& rows, const std::string& column, double factor = 1.0) {
  std::vector<double> values;
  for (const SweepRow* row : rows) values.push_back(factor * row->number(column));
  return values;
}

TableColumn plain(const std::string& heading, const std::string& column, double factor = 1.0) {
  return {heading, [=](const Rows& rows) { return mean_and_error(numbers(rows, column, factor)); }};
}

/// A probe's value at the end of training: only those with status ok, and how many were not. A vector of one
/// entry has the quantity's own name, `alone`.
TableColumn probed(const std::string& heading, const std::string& name, const std::string& alone = "") {
  return {heading, [=](const Rows& rows) {
            std::vector<double> values;
            std::map<std::string, int> refused;
            for (const SweepRow* row : rows) {
              const std::string& column = row->find(name) || alone.empty() ? name : alone;
              const std::string status = row->text(column + ".status");
              if (status == "ok")
                values.push_back(row->number(column));
              else if (!status.empty())
                ++refused[status];
            }
            std::string text = values.empty() && !refused.empty() ? "" : mean_and_error(values);
            for (const auto& [status, count] : refused) {
              std::string words = status;
              std::replace(words.begin(), words.end(), '_', ' ');
              text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, words);
            }
            return text;
          }};
}

std::vector<TableColumn> columns_of(const std::string& protocol) {
  std::vector<TableColumn> columns = {plain("test accuracy, %", "test_acc", 100),
                                      plain("training loss", "train_loss")};
  if (protocol != "B") {
    columns.push_back(plain("updates", "updates"));
    return columns;
  }
  columns.push_back(plain("updates to target", "steps_to_target"));
  columns.push_back(probed("λ₁", "probe.end.top_eigenvalues.lambda_1", "probe.end.top_eigenvalues.lambda"));
  columns.push_back(probed("φ (ε = 1e-3)", "probe.end.sharpness_keskar.phi_full_1e-3"));
  columns.push_back(probed("B_simple", "probe.end.noise_scale.b_simple"));
  return columns;
}

std::string heading_of(const std::string& protocol) {
  if (protocol == "A-epochs")
    return "Protocol A-epochs: the same number of epochs (a drop here is one of optimisation until shown "
           "otherwise)";
  if (protocol == "A-updates") return "Protocol A-updates: the same number of updates";
  if (protocol == "B") return "Protocol B: stopped at the same training loss";
  return protocol.empty() ? "Runs without a configuration" : "Protocol " + protocol;
}

std::string how_runs_ended(const Rows& rows) {
  std::map<std::string, int> counts;
  for (const SweepRow* row : rows) {
    const std::string status = row->text("status");
    ++counts[status == "finished" && !is_comparable(*row) ? "overshot" : status];
  }
  std::string text;
  for (const auto& [status, count] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, status);
  return text;
}

/// Where no run is comparable, the first column says why; the others stay empty.
std::string reason_for_nothing(const Rows& rows) {
  std::set<std::string> reasons;
  for (const SweepRow* row : rows) {
    const std::string status = row->text("status");
    reasons.insert(status == "finished" ? "overshot" : status);
  }
  return fmt::format("*{}*", fmt::join(reasons, ", "));
}

std::string table_line(const Rows& rows, const std::vector<TableColumn>& columns) {
  const SweepRow& first = *rows.front();
  std::string line =
      fmt::format("| {:.0f} | {} | {:g} | {} |", first.number("batch_size"), first.text("optimizer"),
                  first.number("learning_rate"), how_runs_ended(rows));
  Rows comparable;
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

std::string section(const std::string& protocol, const std::vector<SweepRow>& rows) {
  std::map<std::tuple<double, std::string, double, std::string>, Rows> lines;
  for (const SweepRow& row : rows) {
    if (row.text("protocol") != protocol) continue;
    lines[{row.number("batch_size"), row.text("optimizer"), row.number("learning_rate"),
           row.text("config_id")}]
        .push_back(&row);
  }
  const std::vector<TableColumn> columns = columns_of(protocol);
  std::string text =
      fmt::format("\n## {}\n\n| batch size | optimiser | learning rate | runs |", heading_of(protocol));
  for (const TableColumn& column : columns) text += fmt::format(" {} |", column.heading);
  text += "\n|---:|---|---:|---|";
  for (size_t i = 0; i < columns.size(); ++i) text += "---:|";
  text += '\n';
  for (const auto& [key, members] : lines) text += table_line(members, columns);
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
  if (row.text("status") != "finished") return false;
  return row.text("protocol") != "B" || !(row.number("overshot") > 0);
}

std::string mean_and_error(const std::vector<double>& values) {
  std::vector<double> finite;
  std::copy_if(values.begin(), values.end(), std::back_inserter(finite),
               [](double v) { return std::isfinite(v); });
  const double n = static_cast<double>(finite.size());
  if (finite.empty()) return "–";
  const double mean = std::accumulate(finite.begin(), finite.end(), 0.0) / n;
  double squares = 0;
  for (double v : finite) squares += (v - mean) * (v - mean);
  const double error = finite.size() > 1 ? std::sqrt(squares / (n - 1) / n) : 0.0;
  if (error == 0.0) return fmt::format("{:.4g}{} ({})", mean, finite.size() > 1 ? " ± 0" : "", finite.size());
  const int decimals = std::clamp(1 - static_cast<int>(std::floor(std::log10(error))), 0, 8);
  return fmt::format("{:.{}f} ± {:.{}f} ({})", mean, decimals, error, decimals, finite.size());
}

std::string table_markdown(const std::vector<SweepRow>& rows) {
  std::set<std::string> protocols;
  for (const SweepRow& row : rows) protocols.insert(row.text("protocol"));
  std::string text = fmt::format(
      "# Sweep: {} runs\n\nData {} ({} pixels), {} training and {} test images; model {}. "
      "Mean ± standard error over seeds (n). Diverged runs, and under protocol B those that missed the "
      "target loss or fell "
      "below 0.8 of it, are counted under \"runs\" and enter no mean. Standard errors are over seeds alone; "
      "report.html adds the test images' part.\n",
      rows.size(), distinct(rows, "dataset.name"), distinct(rows, "dataset.pixels"),
      distinct(rows, "dataset.n_train"), distinct(rows, "dataset.n_test"), distinct(rows, "model"));
  for (const std::string& protocol : protocols) text += section(protocol, rows);
  return text;
}

}  // namespace basin
