#include "landscape/surface_file.h"

#include "core/error.h"
#include "core/hash.h"
#include "io/schema.h"

namespace basin {
namespace {

constexpr const char* kState = "state";
constexpr const char* kStateMeaning = "0 todo, 1 ok, 2 nonfinite, 3 failed";
const std::set<std::string> kOwnGroups = {"recipe", "vectors", "provenance"};
const std::set<std::string> kOwnPlotAttributes = {"NX_class", "long_name", "signal", "auxiliary_signals",
                                                  "axes"};

std::vector<int64_t> shape_of(const SurfacePlot& plot) {
  std::vector<int64_t> shape;
  for (const SurfaceAxis& axis : plot.axes) shape.push_back(static_cast<int64_t>(axis.values.size()));
  return shape;
}

std::string label_name(const SurfaceAxis& axis) { return axis.name + "_label"; }

// ---- writing

std::vector<h5::DataSet> write_axes(h5::Group& group, const SurfacePlot& plot) {
  std::vector<h5::DataSet> scales;
  for (const SurfaceAxis& axis : plot.axes) {
    h5::DataSet scale = group.write(axis.name, axis.values);
    describe(scale, axis.units, axis.long_name, axis.definition);
    scale.make_scale(axis.name);
    if (!axis.labels.empty()) {
      TORCH_CHECK(axis.labels.size() == axis.values.size(), "labels of axis ", axis.name,
                  " and its values differ in number");
      h5::DataSet labels = group.write_texts(label_name(axis), axis.labels);
      describe(labels, "1", "names of " + axis.long_name, axis.definition);
      labels.attach_scale(0, scale);
    }
    scales.push_back(std::move(scale));
  }
  return scales;
}

void attach(h5::DataSet& dataset, const std::vector<h5::DataSet>& scales) {
  for (size_t i = 0; i < scales.size(); ++i) dataset.attach_scale(static_cast<int64_t>(i), scales[i]);
}

void write_column(h5::Group& group, const SurfaceColumn& column, const std::vector<int64_t>& shape,
                  int64_t cells, const std::vector<h5::DataSet>& scales) {
  std::vector<double> values = column.values;
  if (values.empty()) values.assign(static_cast<size_t>(cells), std::numeric_limits<double>::quiet_NaN());
  TORCH_CHECK(static_cast<int64_t>(values.size()) == cells, "column ", column.name,
              " has another length than its grid");
  h5::DataSet dataset = group.write(column.name, at::kDouble, shape, values.data());
  describe(dataset, column.units, column.long_name, column.definition);
  attach(dataset, scales);
}

void write_state(h5::Group& group, const SurfacePlot& plot, const std::vector<int64_t>& shape,
                 const std::vector<h5::DataSet>& scales) {
  TORCH_CHECK(static_cast<int64_t>(plot.state.size()) == plot.cells(),
              "the state has another length than its grid");
  h5::DataSet state = group.write(kState, at::kByte, shape, plot.state.data());
  describe(state, "1", kStateMeaning, "cell-state");
  attach(state, scales);
}

void write_plot(h5::File& file, const SurfacePlot& plot) {
  h5::Group group = file.create_group(plot.name);
  std::vector<std::string> axes, further;
  for (const SurfaceAxis& axis : plot.axes) axes.push_back(axis.name);
  for (size_t i = 1; i < plot.columns.size(); ++i) further.push_back(plot.columns[i].name);
  group.set_attribute("NX_class", std::string("NXdata"));
  group.set_attribute("long_name", plot.long_name);
  group.set_attribute("signal", plot.columns.at(0).name);
  if (!further.empty()) group.set_attribute("auxiliary_signals", further);
  group.set_attribute("axes", axes);
  group.set_attributes(plot.attributes);
  const std::vector<h5::DataSet> scales = write_axes(group, plot);
  const std::vector<int64_t> shape = shape_of(plot);
  for (const SurfaceColumn& column : plot.columns) write_column(group, column, shape, plot.cells(), scales);
  if (!plot.state.empty()) write_state(group, plot, shape, scales);
}

// ---- reading

SurfaceAxis read_axis(const h5::Group& group, const std::string& name) {
  const h5::DataSet dataset = group.dataset(name);
  SurfaceAxis axis{name,
                   dataset.attribute_as<std::string>("units"),
                   dataset.attribute_as<std::string>("long_name"),
                   dataset.attribute_as<std::string>("definition"),
                   dataset.read<double>(),
                   {}};
  if (group.has(label_name(axis))) axis.labels = group.dataset(label_name(axis)).read_texts();
  return axis;
}

SurfacePlot read_plot(const h5::Group& group, const std::string& name) {
  SurfacePlot plot;
  plot.name = name;
  plot.long_name = group.attribute_as<std::string>("long_name");
  std::set<std::string> known = {kState};
  for (const std::string& axis : group.attribute_as<std::vector<std::string>>("axes")) {
    plot.axes.push_back(read_axis(group, axis));
    known.insert({axis, label_name(plot.axes.back())});
  }
  for (const std::string& column : group.dataset_names()) {
    if (known.count(column)) continue;
    const h5::DataSet dataset = group.dataset(column);
    plot.columns.push_back({column, dataset.attribute_as<std::string>("units"),
                            dataset.attribute_as<std::string>("long_name"),
                            dataset.attribute_as<std::string>("definition"), dataset.read<double>()});
  }
  if (group.has(kState)) plot.state = group.dataset(kState).read<uint8_t>();
  if (!std::all_of(plot.state.begin(), plot.state.end(), is_cell_state))
    throw IoError(fmt::format("{}: {}/state holds a number that is none (0 to 3)", group.file(), plot.name));
  for (auto& [key, value] : group.attributes()) {
    if (!kOwnPlotAttributes.count(key)) plot.attributes.emplace_back(key, std::move(value));
  }
  return plot;
}

std::map<std::string, std::string> lines_of(const std::string& recipe) {
  std::map<std::string, std::string> lines;
  std::istringstream text(recipe);
  for (std::string line; std::getline(text, line);) lines[line.substr(0, line.find(" = "))] = line;
  return lines;
}

}  // namespace

int64_t SurfacePlot::cells() const { return c10::multiply_integers(shape_of(*this)); }

std::vector<int64_t> SurfacePlot::position(int64_t cell) const {
  std::vector<int64_t> position(axes.size());
  for (size_t i = axes.size(); i-- > 0;) {
    const auto extent = static_cast<int64_t>(axes[i].values.size());
    position[i] = cell % extent;
    cell /= extent;
  }
  return position;
}

std::vector<double> SurfacePlot::coordinates(int64_t cell) const {
  const std::vector<int64_t> at = position(cell);
  std::vector<double> coordinates;
  for (size_t i = 0; i < axes.size(); ++i) coordinates.push_back(axes[i].values[static_cast<size_t>(at[i])]);
  return coordinates;
}

const char* to_string(SurfaceStatus status) {
  switch (status) {
    case SurfaceStatus::ok:
      return "ok";
    case SurfaceStatus::partial:
      return "partial";
    case SurfaceStatus::failed:
      return "failed";
  }
  return "";
}

SurfaceStatus SurfaceRecord::status() const {
  bool todo = false, failed = false;
  for (const SurfacePlot& plot : plots) {
    for (const uint8_t state : plot.state) {
      todo = todo || state == static_cast<uint8_t>(CellState::todo);
      failed = failed || state == static_cast<uint8_t>(CellState::failed);
    }
  }
  return todo ? SurfaceStatus::partial : failed ? SurfaceStatus::failed : SurfaceStatus::ok;
}

std::string recipe_text(const h5::Attributes& recipe) {
  std::string text;
  for (const auto& [name, value] : recipe) text += name + " = " + to_toml(value) + "\n";
  return text;
}

std::string first_difference(const std::string& there, const std::string& asked) {
  const std::map<std::string, std::string> a = lines_of(there), b = lines_of(asked);
  for (const auto& [name, line] : b) {
    const auto found = a.find(name);
    if (found == a.end()) return fmt::format("no {} there, {} asked for", name, line);
    if (found->second != line) return fmt::format("{} there, {} asked for", found->second, line);
  }
  for (const auto& [name, line] : a) {
    if (!b.count(name)) return fmt::format("{} there, nothing of it asked for", line);
  }
  return "";
}

void write_surface_file(const std::string& path, const SurfaceRecord& record) {
  h5::File file = create_schema_file(path, kSurfaceSchema);
  file.set_attribute("kind", record.kind);
  file.set_attribute("recipe_hash", sha256_hex(recipe_text(record.recipe)));
  file.set_attribute("status", std::string(to_string(record.status())));
  file.set_attribute("default", record.plots.at(0).name);
  file.create_group("recipe").set_attributes(record.recipe);
  for (const SurfacePlot& plot : record.plots) {
    TORCH_CHECK(!kOwnGroups.count(plot.name), "a plot cannot be called ", plot.name);
    write_plot(file, plot);
  }
  for (const auto& [name, vector] : record.vectors) {
    h5::DataSet dataset = file.write_tensor("vectors/" + name, vector.detach().cpu().contiguous());
    describe(dataset, "1", name, "landscape-vectors");
  }
  file.create_group("provenance").set_attributes(text_attributes(record.provenance));
  file.save();
}

SurfaceRecord read_surface_file(const std::string& path) {
  const h5::File file = open_schema_file(path, kSurfaceSchema);
  SurfaceRecord record;
  record.kind = file.attribute_as<std::string>("kind");
  record.recipe = file.group("recipe").attributes();
  for (const std::string& name : file.group_names()) {
    if (!kOwnGroups.count(name)) record.plots.push_back(read_plot(file.group(name), name));
  }
  if (file.has("vectors")) {
    const h5::Group vectors = file.group("vectors");
    for (const std::string& name : vectors.dataset_names()) {
      record.vectors.emplace_back(name, vectors.dataset(name).read_tensor());
    }
  }
  record.provenance = texts_of(file.group("provenance").attributes());
  return record;
}

}  // namespace basin
