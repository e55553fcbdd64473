// defines: the payloads of journal frames, to bytes and back into a RunRecord.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/record.h"

namespace basin {

/// Seconds since 1970 as well as text: times of events are relative to the journal's creation.
struct JournalTime {
  double unix_seconds;
  std::string utc;
};
JournalTime journal_now();

std::string encode_header(const RunHeader& header, const JournalTime& time);
std::string encode_table(const Table& definition);
std::string encode_row(uint16_t table, const std::vector<double>& row);
std::string encode_outcomes(const std::string& split, const ExampleOutcomes& outcomes);
std::string encode_summary(const std::vector<std::pair<std::string, OptionValue>>& summary);
std::string encode_status(RunState status, const std::string& message, const JournalTime& time);
std::string encode_event(const std::string& level, const std::string& text, const JournalTime& time);

/// Takes frame after frame into a RunRecord.
class JournalDecoder {
 public:
  /// Throws std::out_of_range or std::runtime_error with a reason where the payload makes no sense.
  void take(std::string_view payload);
  bool has_header() const { return has_header_; }
  RunRecord& record() { return record_; }
  /// In order of definition: a row names its table by position.
  const std::vector<std::string>& table_names() const { return table_names_; }

 private:
  RunRecord record_;
  bool has_header_ = false;
  double created_ = 0;
  std::vector<std::string> table_names_;
};

}  // namespace basin
