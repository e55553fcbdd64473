#include "io/record.h"

#include "core/error.h"

namespace basin {

int64_t Table::row_width() const {
  int64_t width = 0;
  for (const Column& column : columns) width += column.width;
  return width;
}

int64_t Table::row_count() const {
  const int64_t width = row_width();
  return width == 0 ? 0 : static_cast<int64_t>(rows.size()) / width;
}

std::vector<double> Table::column(const std::string& wanted) const {
  int64_t position = 0;
  for (const Column& column : columns) {
    if (column.name == wanted && column.width == 1) {
      std::vector<double> values(static_cast<size_t>(row_count()));
      for (size_t row = 0; row < values.size(); ++row) {
        values[row] = rows[row * static_cast<size_t>(row_width()) + static_cast<size_t>(position)];
      }
      return values;
    }
    position += column.width;
  }
  throw IoError(fmt::format("table \"{}\" has no column \"{}\"", name, wanted));
}

int64_t updates_in(const RunRecord& record) {
  const auto train = record.tables.find("train");
  if (train == record.tables.end() || train->second.row_count() == 0) return 0;
  const std::vector<Column>& columns = train->second.columns;
  const bool numbered = std::any_of(columns.begin(), columns.end(),
                                    [](const Column& column) { return column.name == "update"; });
  // A branch's first row is not of update 1.
  return numbered ? static_cast<int64_t>(train->second.column("update").back()) : train->second.row_count();
}

}  // namespace basin
