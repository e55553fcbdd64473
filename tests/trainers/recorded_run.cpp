#include "tests/trainers/recorded_run.h"

#include <gtest/gtest.h>

#include <cstring>

#include "trainers/data_identity.h"
#include "trainers/tables.h"

namespace basin::testing {

RecordedRun::RecordedRun(const RunSettings& s, const std::string& folder)
    : TestRun(s), recorder(folder, header(), *trainer, false) {
  trainer->observe(recorder);
  resumed = recorder.resume_or_start();
}

RunHeader RecordedRun::header() const {
  RunHeader h;
  h.run_id = "0123456789ab";
  h.config_id = "cdef01234567";
  h.data = data_attributes(data);
  h.parameters = parameter_rows(model->parameter_table());
  return h;
}

void Crash::on_update(const UpdateRecord& record) {
  if (record.update == after_) throw std::runtime_error("crash");
}

void expect_same_tables(const RunRecord& a, const RunRecord& b) {
  ASSERT_EQ(a.tables.size(), b.tables.size());
  for (const auto& [name, table] : a.tables) {
    const Table& other = b.tables.at(name);
    ASSERT_EQ(table.row_count(), other.row_count()) << name;
    for (int64_t row = 0; row < table.row_count(); ++row) {
      size_t entry = static_cast<size_t>(row * table.row_width());
      for (const Column& column : table.columns) {
        const size_t bytes = static_cast<size_t>(column.width) * sizeof(double);
        const bool same = std::memcmp(&table.rows[entry], &other.rows[entry], bytes) == 0;  // NaN equals NaN
        EXPECT_TRUE(same || column.name == "seconds") << name << '.' << column.name << " in row " << row;
        entry += static_cast<size_t>(column.width);
      }
    }
  }
}

}  // namespace basin::testing
