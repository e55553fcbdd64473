#include "io/run_file.h"

#include <filesystem>

#include "core/error.h"
#include "core/provenance.h"
#include "io/schema.h"

namespace basin {
namespace {

constexpr const char* kEnded = "ended_utc";  // in /provenance, once the run has ended
constexpr const char* kLabelScale = "parameter";
// Attributes of a table's group.
constexpr std::array<std::string_view, 4> kOfEveryTable = {"NX_class", "long_name", "signal", "axes"};

// ---- writing

std::string updated_utc(const RunRecord& record) {
  return record.updated_utc.empty() ? utc_now() : record.updated_utc;
}

void write_root(h5::File& file, const RunRecord& record) {
  const RunHeader& header = record.header;
  file.set_attribute("run_id", header.run_id);
  file.set_attribute("config_id", header.config_id);
  file.set_attribute("status", std::string(to_string(record.status)));
  file.set_attribute("status_message", record.status_message);
  file.set_attribute("created_utc", header.created_utc);
  file.set_attribute("updated_utc", updated_utc(record));
  file.set_attribute("generator", std::string("basin"));
  // What a viewer draws first (NeXus): the evaluations, or whatever table there is.
  const std::string first = record.tables.empty() ? "" : record.tables.begin()->first;
  file.set_attribute("default", record.tables.count("eval") ? std::string("eval") : first);
}

void write_header_groups(h5::File& file, const RunRecord& record) {
  const RunHeader& header = record.header;
  h5::Group config = file.create_group("config");
  h5::DataSet toml = config.write_text("toml", header.config);
  describe(toml, "1", "resolved study file of this run", "config");
  config.set_attributes(header.options);
  h5::Group provenance = file.create_group("provenance");
  provenance.set_attributes(text_attributes(header.provenance));
  if (record.status != RunState::running) provenance.set_attribute(kEnded, updated_utc(record));
  file.create_group("rng").set_attributes(header.rng);
  file.create_group("data").set_attributes(header.data);
}

template <class Get>
auto column_of(const std::vector<ParameterRow>& rows, Get get) {
  std::vector<std::decay_t<decltype(get(rows[0]))>> values;
  for (const ParameterRow& row : rows) values.push_back(get(row));
  return values;
}

void write_parameters(h5::File& file, const std::vector<ParameterRow>& rows) {
  h5::Group group = file.create_group("params");
  h5::DataSet name = group.write_texts("name", column_of(rows, [](const ParameterRow& r) { return r.name; }));
  describe(name, "1", "parameter", "parameter-name");
  name.make_scale("name");
  const auto add = [&](h5::DataSet dataset, const char* units, const char* long_name,
                       const char* definition) {
    describe(dataset, units, long_name, definition);
    dataset.attach_scale(0, name);
  };
  add(group.write_texts("layer", column_of(rows, [](const ParameterRow& r) { return r.layer; })), "1",
      "layer", "parameter-layer");
  add(group.write_texts("kind", column_of(rows, [](const ParameterRow& r) { return r.kind; })), "1",
      "kind of parameter", "parameter-kind");
  add(group.write_texts(
          "shape",
          column_of(rows, [](const ParameterRow& r) { return fmt::format("{}", fmt::join(r.shape, ",")); })),
      "1", "shape, comma-separated", "parameter-shape");
  add(group.write("offset", column_of(rows, [](const ParameterRow& r) { return r.offset; })), "elements",
      "offset in the flat vector", "parameter-offset");
  add(group.write("numel", column_of(rows, [](const ParameterRow& r) { return r.numel; })), "elements",
      "number of elements", "parameter-numel");
}

/// The row-major block of a column that starts at entry `first` of each row.
std::vector<double> column_block(const Table& table, int64_t first, int64_t width) {
  std::vector<double> block;
  block.reserve(static_cast<size_t>(table.row_count() * width));
  for (int64_t row = 0; row < table.row_count(); ++row) {
    const auto start = table.rows.begin() + row * table.row_width() + first;
    block.insert(block.end(), start, start + width);
  }
  return block;
}

bool is_wide(const Column& column) { return !column.labels.empty(); }

/// The scales of what a viewer draws of a table, its second column.
std::vector<std::string> axes_of(const Table& table) {
  std::vector<std::string> axes{table.columns[0].name};
  if (table.columns.size() > 1 && is_wide(table.columns[1])) axes.push_back(kLabelScale);
  return axes;
}

/// Columns with the same labels share one scale: "parameter", then "parameter_2", ...
class LabelScales {
 public:
  explicit LabelScales(h5::Group& group) : group_(group) {}
  const std::string& attach(h5::DataSet& dataset, const std::vector<std::string>& labels) {
    for (const Scale& scale : scales_) {
      if (scale.labels != labels) continue;
      dataset.attach_scale(1, scale.dataset);
      return scale.name;
    }
    const std::string name =
        scales_.empty() ? kLabelScale : fmt::format("{}_{}", kLabelScale, scales_.size() + 1);
    h5::DataSet scale = group_.write_texts(name, labels);
    describe(scale, "1", "parameter", "parameter-name");
    scale.make_scale(name);
    dataset.attach_scale(1, scale);
    scales_.push_back({name, labels, std::move(scale)});
    return scales_.back().name;
  }

 private:
  struct Scale {
    std::string name;
    std::vector<std::string> labels;
    h5::DataSet dataset;
  };
  h5::Group& group_;
  std::vector<Scale> scales_;
};

void write_table(h5::File& file, const Table& table) {
  h5::Group group = file.create_group(table.name);
  group.set_attribute("NX_class", std::string("NXdata"));
  group.set_attribute("long_name", table.long_name);
  if (table.columns.size() > 1) group.set_attribute("signal", table.columns[1].name);
  if (!table.columns.empty()) group.set_attribute("axes", axes_of(table));
  group.set_attributes(table.attributes);
  LabelScales labels(group);
  std::optional<h5::DataSet> rows;
  int64_t first = 0;
  for (const Column& column : table.columns) {
    const std::vector<double> block = column_block(table, first, column.width);
    std::vector<int64_t> shape{table.row_count()};
    if (is_wide(column)) shape.push_back(column.width);
    h5::DataSet dataset = group.write(column.name, at::kDouble, shape, block.data());
    describe(dataset, column.units, column.long_name, column.definition);
    if (!rows) {
      dataset.make_scale(column.name);
      rows = std::move(dataset);
    } else {
      dataset.attach_scale(0, *rows);
      if (is_wide(column)) dataset.set_attribute("labels", labels.attach(dataset, column.labels));
    }
    first += column.width;
  }
}

/// numpy.packbits: the first example is the highest bit.
std::vector<uint8_t> pack_bits(const std::vector<uint8_t>& flags) {
  std::vector<uint8_t> bytes((flags.size() + 7) / 8, 0);
  for (size_t i = 0; i < flags.size(); ++i) {
    if (flags[i]) bytes[i / 8] = static_cast<uint8_t>(bytes[i / 8] | (0x80 >> (i % 8)));
  }
  return bytes;
}

std::vector<uint8_t> unpack_bits(const std::vector<uint8_t>& bytes, size_t count) {
  std::vector<uint8_t> flags(count);
  for (size_t i = 0; i < count; ++i) flags[i] = (bytes.at(i / 8) >> (7 - i % 8)) & 1;
  return flags;
}

void write_outcomes(h5::File& file, const std::string& split, const ExampleOutcomes& outcomes) {
  h5::Group group = file.create_group("outcomes/" + split);
  group.set_attribute("n", static_cast<int64_t>(outcomes.loss.size()));
  h5::DataSet example = write_index_scale(group, "example", static_cast<int64_t>(outcomes.loss.size()),
                                          "position in the split");
  h5::DataSet loss = group.write("loss", outcomes.loss);
  describe(loss, "loss", "loss of the example", "outcome-loss");
  loss.attach_scale(0, example);
  if (outcomes.correct.empty()) return;
  const std::vector<uint8_t> packed = pack_bits(outcomes.correct);
  h5::DataSet byte =
      write_index_scale(group, "byte", static_cast<int64_t>(packed.size()), "byte of eight examples");
  h5::DataSet correct = group.write("correct", packed);
  describe(correct, "1", "classified correctly, packed bits", "outcome-correct");
  correct.attach_scale(0, byte);
  h5::DataSet margin = group.write("margin", outcomes.margin);
  describe(margin, "1", "logit of the label less the largest other", "outcome-margin");
  margin.attach_scale(0, example);
  if (outcomes.predicted.empty()) return;
  h5::DataSet predicted = group.write("predicted", outcomes.predicted);
  describe(predicted, "1", "class of the largest logit", "outcome-predicted");
  predicted.attach_scale(0, example);
}

void write_log(h5::File& file, const std::vector<RunRecord::Event>& events) {
  h5::Group group = file.create_group("log");
  std::vector<double> seconds;
  std::vector<std::string> times, levels, texts;
  for (const RunRecord::Event& event : events) {
    seconds.push_back(event.seconds);
    times.push_back(event.time);
    levels.push_back(event.level);
    texts.push_back(event.text);
  }
  h5::DataSet index = write_index_scale(group, "event", static_cast<int64_t>(events.size()), "event");
  const auto add = [&](h5::DataSet dataset, const char* units, const char* long_name,
                       const char* definition) {
    describe(dataset, units, long_name, definition);
    dataset.attach_scale(0, index);
  };
  add(group.write("seconds", seconds), "s", "wall time since the run was created", "log-seconds");
  add(group.write_texts("time", times), "1", "UTC", "log-time");
  add(group.write_texts("level", levels), "1", "level", "log-level");
  add(group.write_texts("text", texts), "1", "text", "log-text");
}

// ---- reading

std::vector<ParameterRow> read_parameters(const h5::Group& group) {
  const std::vector<std::string> names = group.dataset("name").read_texts(),
                                 layers = group.dataset("layer").read_texts(),
                                 kinds = group.dataset("kind").read_texts(),
                                 shapes = group.dataset("shape").read_texts();
  const std::vector<int64_t> offsets = group.dataset("offset").read<int64_t>(),
                             numels = group.dataset("numel").read<int64_t>();
  std::vector<ParameterRow> rows;
  for (size_t i = 0; i < names.size(); ++i) {
    ParameterRow row{names[i], layers.at(i), kinds.at(i), {}, offsets.at(i), numels.at(i)};
    std::istringstream shape(shapes.at(i));
    for (std::string extent; std::getline(shape, extent, ',');) row.shape.push_back(std::stoll(extent));
    rows.push_back(std::move(row));
  }
  return rows;
}

Table read_table(const h5::Group& group, const std::string& name) {
  Table table;
  table.name = name;
  table.long_name = group.attribute_as<std::string>("long_name");
  table.attributes = group.attributes();
  std::erase_if(table.attributes, [](const auto& entry) {
    return std::find(kOfEveryTable.begin(), kOfEveryTable.end(), entry.first) != kOfEveryTable.end();
  });
  std::vector<std::vector<double>> blocks;
  for (const std::string& column_name : group.dataset_names()) {
    const h5::DataSet dataset = group.dataset(column_name);
    if (dataset.is_text()) continue;  // a scale of labels
    Column column;
    column.name = column_name;
    column.units = dataset.attribute_as<std::string>("units");
    column.long_name = dataset.attribute_as<std::string>("long_name");
    column.definition = dataset.attribute_as<std::string>("definition");
    const std::vector<int64_t> shape = dataset.shape();
    column.width = shape.size() == 2 ? shape[1] : 1;
    if (dataset.has_attribute("labels")) {
      column.labels = group.dataset(dataset.attribute_as<std::string>("labels")).read_texts();
    }
    table.columns.push_back(std::move(column));
    blocks.push_back(dataset.read<double>());
  }
  const size_t rows = blocks.empty() ? 0 : blocks[0].size();
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].size() != rows * static_cast<size_t>(table.columns[i].width)) {
      throw IoError(fmt::format("{}: columns of {} have different lengths", group.file(), group.path()));
    }
  }
  for (size_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < blocks.size(); ++i) {
      const size_t width = static_cast<size_t>(table.columns[i].width);
      const auto start = blocks[i].begin() + static_cast<std::ptrdiff_t>(row * width);
      table.rows.insert(table.rows.end(), start, start + static_cast<std::ptrdiff_t>(width));
    }
  }
  return table;
}

ExampleOutcomes read_outcomes(const h5::Group& group) {
  const size_t count = static_cast<size_t>(group.attribute_as<int64_t>("n"));
  ExampleOutcomes outcomes;
  outcomes.loss = group.dataset("loss").read<float>();
  if (!group.has("correct")) return outcomes;
  outcomes.correct = unpack_bits(group.dataset("correct").read<uint8_t>(), count);
  outcomes.margin = group.dataset("margin").read<float>();
  if (group.has("predicted")) outcomes.predicted = group.dataset("predicted").read<uint8_t>();
  return outcomes;
}

std::vector<RunRecord::Event> read_log(const h5::Group& group) {
  const std::vector<double> seconds = group.dataset("seconds").read<double>();
  const std::vector<std::string> times = group.dataset("time").read_texts(),
                                 levels = group.dataset("level").read_texts(),
                                 texts = group.dataset("text").read_texts();
  std::vector<RunRecord::Event> events;
  for (size_t i = 0; i < seconds.size(); ++i)
    events.push_back({seconds[i], times.at(i), levels.at(i), texts.at(i)});
  return events;
}

}  // namespace

void write_run_file(const std::string& path, const RunRecord& record) {
  h5::File file = create_schema_file(path, kRunSchema);
  write_root(file, record);
  write_header_groups(file, record);
  write_parameters(file, record.header.parameters);
  for (const auto& [name, table] : record.tables) write_table(file, table);
  for (const auto& [split, outcomes] : record.outcomes) write_outcomes(file, split, outcomes);
  file.create_group("summary").set_attributes(record.summary);
  write_log(file, record.events);
  file.save();
}

std::string run_file_at(const std::string& path) {
  return std::filesystem::is_directory(path) ? path + "/run.h5" : path;
}

RunRecord read_run_file(const std::string& path) {
  const h5::File file = open_schema_file(path, kRunSchema);
  RunRecord record;
  record.header.run_id = file.attribute_as<std::string>("run_id");
  record.header.config_id = file.attribute_as<std::string>("config_id");
  record.header.created_utc = file.attribute_as<std::string>("created_utc");
  record.status = parse_run_state(file.attribute_as<std::string>("status"), path);
  record.status_message = file.attribute_as<std::string>("status_message");
  record.updated_utc = file.attribute_as<std::string>("updated_utc");
  record.header.config = file.dataset("config/toml").read_text();
  record.header.options = file.group("config").attributes();
  record.header.provenance = texts_of(file.group("provenance").attributes());
  std::erase_if(record.header.provenance,
                [](const auto& entry) { return entry.first == kEnded; });  // updated_utc has it
  record.header.rng = file.group("rng").attributes();
  record.header.data = file.group("data").attributes();
  record.header.parameters = read_parameters(file.group("params"));
  record.summary = file.group("summary").attributes();
  record.events = read_log(file.group("log"));
  for (const std::string& name : file.group_names()) {
    const h5::Group group = file.group(name);
    if (group.has_attribute("NX_class")) record.tables[name] = read_table(group, name);
  }
  if (file.has("outcomes")) {
    const h5::Group splits = file.group("outcomes");
    for (const std::string& split : splits.group_names())
      record.outcomes[split] = read_outcomes(splits.group(split));
  }
  return record;
}

std::vector<std::pair<std::string, OptionValue>> read_run_data(const std::string& path) {
  return open_schema_file(path, kRunSchema).group("data").attributes();
}

}  // namespace basin
