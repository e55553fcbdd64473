#include "io/journal_codec.h"

#include <chrono>

#include "core/provenance.h"
#include "io/bytes.h"
#include "io/journal_frames.h"

namespace basin {
namespace {

using NamedValues = std::vector<std::pair<std::string, OptionValue>>;

ByteWriter begin(FrameKind kind) {
  ByteWriter out;
  out.number(static_cast<uint8_t>(kind));
  return out;
}

void write_texts(ByteWriter& out, const std::vector<std::string>& texts) {
  out.number(static_cast<uint32_t>(texts.size()));
  for (const std::string& text : texts) out.text(text);
}

std::vector<std::string> read_texts(ByteReader& in) {
  std::vector<std::string> texts;
  for (uint32_t left = in.number<uint32_t>(); left > 0; --left) texts.push_back(in.text());
  return texts;
}

/// The variant's index, then the value.
void write_value(ByteWriter& out, const OptionValue& value) {
  out.number(static_cast<uint8_t>(value.index()));
  struct Visitor {
    ByteWriter& out;
    void operator()(bool v) const { out.number(static_cast<uint8_t>(v)); }
    void operator()(int64_t v) const { out.number(v); }
    void operator()(double v) const { out.number(v); }
    void operator()(const std::string& v) const { out.text(v); }
    void operator()(const std::vector<int64_t>& v) const { out.array(v); }
    void operator()(const std::vector<double>& v) const { out.array(v); }
    void operator()(const std::vector<std::string>& v) const { write_texts(out, v); }
  };
  std::visit(Visitor{out}, value);
}

OptionValue read_value(ByteReader& in) {
  const uint8_t index = in.number<uint8_t>();
  switch (index) {
    case 0:
      return in.number<uint8_t>() != 0;
    case 1:
      return in.number<int64_t>();
    case 2:
      return in.number<double>();
    case 3:
      return in.text();
    case 4:
      return in.array<int64_t>();
    case 5:
      return in.array<double>();
    case 6:
      return read_texts(in);
    default:
      throw std::runtime_error(fmt::format("unknown type of value {}", index));
  }
}

void write_values(ByteWriter& out, const NamedValues& values) {
  out.number(static_cast<uint32_t>(values.size()));
  for (const auto& [name, value] : values) {
    out.text(name);
    write_value(out, value);
  }
}

NamedValues read_values(ByteReader& in) {
  NamedValues values;
  for (uint32_t left = in.number<uint32_t>(); left > 0; --left) {
    std::string name = in.text();
    values.emplace_back(std::move(name), read_value(in));
  }
  return values;
}

void write_time(ByteWriter& out, const JournalTime& time) {
  out.number(time.unix_seconds);
  out.text(time.utc);
}

JournalTime read_time(ByteReader& in) {
  const double seconds = in.number<double>();
  return {seconds, in.text()};
}

void write_parameters(ByteWriter& out, const std::vector<ParameterRow>& parameters) {
  out.number(static_cast<uint32_t>(parameters.size()));
  for (const ParameterRow& row : parameters) {
    out.text(row.name);
    out.text(row.layer);
    out.text(row.kind);
    out.array(row.shape);
    out.number(row.offset);
    out.number(row.numel);
  }
}

std::vector<ParameterRow> read_parameters(ByteReader& in) {
  std::vector<ParameterRow> parameters(in.number<uint32_t>());
  for (ParameterRow& row : parameters) {
    row.name = in.text();
    row.layer = in.text();
    row.kind = in.text();
    row.shape = in.array<int64_t>();
    row.offset = in.number<int64_t>();
    row.numel = in.number<int64_t>();
  }
  return parameters;
}

RunHeader read_header(ByteReader& in) {
  RunHeader header;
  header.run_id = in.text();
  header.config_id = in.text();
  header.config = in.text();
  header.created_utc = in.text();
  header.options = read_values(in);
  for (uint32_t left = in.number<uint32_t>(); left > 0; --left) {
    std::string name = in.text();
    header.provenance.emplace_back(std::move(name), in.text());
  }
  header.rng = read_values(in);
  header.data = read_values(in);
  header.parameters = read_parameters(in);
  return header;
}

Table read_table(ByteReader& in) {
  Table table;
  table.name = in.text();
  table.long_name = in.text();
  table.columns.resize(in.number<uint32_t>());
  for (Column& column : table.columns) {
    column.name = in.text();
    column.units = in.text();
    column.long_name = in.text();
    column.definition = in.text();
    column.width = in.number<int64_t>();
    column.labels = read_texts(in);
  }
  if (!in.at_end()) table.attributes = read_values(in);  // journals from before there were any end here
  return table;
}

}  // namespace

JournalTime journal_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration<double>(now).count(), utc_now()};
}

std::string encode_header(const RunHeader& header, const JournalTime& time) {
  ByteWriter out = begin(FrameKind::header);
  write_time(out, time);
  out.text(header.run_id);
  out.text(header.config_id);
  out.text(header.config);
  out.text(header.created_utc);
  write_values(out, header.options);
  out.number(static_cast<uint32_t>(header.provenance.size()));
  for (const auto& [name, value] : header.provenance) {
    out.text(name);
    out.text(value);
  }
  write_values(out, header.rng);
  write_values(out, header.data);
  write_parameters(out, header.parameters);
  return out.bytes();
}

std::string encode_table(const Table& definition) {
  ByteWriter out = begin(FrameKind::table);
  out.text(definition.name);
  out.text(definition.long_name);
  out.number(static_cast<uint32_t>(definition.columns.size()));
  for (const Column& column : definition.columns) {
    out.text(column.name);
    out.text(column.units);
    out.text(column.long_name);
    out.text(column.definition);
    out.number(column.width);
    write_texts(out, column.labels);
  }
  write_values(out, definition.attributes);
  return out.bytes();
}

std::string encode_row(uint16_t table, const std::vector<double>& row) {
  ByteWriter out = begin(FrameKind::row);
  out.number(table);
  out.array(row);
  return out.bytes();
}

std::string encode_outcomes(const std::string& split, const ExampleOutcomes& outcomes) {
  ByteWriter out = begin(FrameKind::outcomes);
  out.text(split);
  out.array(outcomes.correct);
  out.array(outcomes.loss);
  out.array(outcomes.margin);
  out.array(outcomes.predicted);
  return out.bytes();
}

std::string encode_summary(const NamedValues& summary) {
  ByteWriter out = begin(FrameKind::summary);
  write_values(out, summary);
  return out.bytes();
}

std::string encode_status(RunState status, const std::string& message, const JournalTime& time) {
  ByteWriter out = begin(FrameKind::status);
  write_time(out, time);
  out.text(to_string(status));
  out.text(message);
  return out.bytes();
}

std::string encode_event(const std::string& level, const std::string& text, const JournalTime& time) {
  ByteWriter out = begin(FrameKind::event);
  write_time(out, time);
  out.text(level);
  out.text(text);
  return out.bytes();
}

void JournalDecoder::take(std::string_view payload) {
  ByteReader in(payload);
  const FrameKind kind = static_cast<FrameKind>(in.number<uint8_t>());
  if (has_header_ == (kind == FrameKind::header))
    throw std::runtime_error("the header must come first and only once");
  switch (kind) {
    case FrameKind::header: {
      const JournalTime time = read_time(in);
      created_ = time.unix_seconds;
      record_.updated_utc = time.utc;
      record_.header = read_header(in);
      has_header_ = true;
      break;
    }
    case FrameKind::table: {
      Table table = read_table(in);
      table_names_.push_back(table.name);
      record_.tables[table.name] = std::move(table);
      break;
    }
    case FrameKind::row: {
      const uint16_t index = in.number<uint16_t>();
      if (index >= table_names_.size()) throw std::runtime_error("a row of an undefined table");
      Table& table = record_.tables.at(table_names_[index]);
      const std::vector<double> row = in.array<double>();
      if (static_cast<int64_t>(row.size()) != table.row_width())
        throw std::runtime_error("a row of a wrong width");
      table.rows.insert(table.rows.end(), row.begin(), row.end());
      break;
    }
    case FrameKind::outcomes: {
      ExampleOutcomes& outcomes = record_.outcomes[in.text()];
      outcomes.correct = in.array<uint8_t>();
      outcomes.loss = in.array<float>();
      outcomes.margin = in.array<float>();
      if (!in.at_end())
        outcomes.predicted = in.array<uint8_t>();  // journals from before there were any end here
      break;
    }
    case FrameKind::summary:
      record_.summary = read_values(in);
      break;
    case FrameKind::status: {
      record_.updated_utc = read_time(in).utc;
      record_.status = parse_run_state(in.text(), "status frame");
      record_.status_message = in.text();
      break;
    }
    case FrameKind::event: {
      const JournalTime time = read_time(in);
      std::string level = in.text();
      record_.updated_utc = time.utc;
      record_.events.push_back({time.unix_seconds - created_, time.utc, std::move(level), in.text()});
      break;
    }
  }
  if (!in.at_end()) throw std::runtime_error("unexpected bytes at its end");
}

}  // namespace basin
