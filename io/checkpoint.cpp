#include "io/checkpoint.h"

#include <set>

#include "core/error.h"
#include "io/schema.h"

namespace basin {
namespace {

int64_t bytes_of(const Checkpoint& checkpoint) {
  int64_t bytes = 0;
  for (const ParameterInfo& parameter : checkpoint.parameters)
    bytes += static_cast<int64_t>(parameter.tensor.nbytes());
  const auto add = [&](const NamedTensors& tensors) {
    for (const auto& [name, tensor] : tensors) bytes += static_cast<int64_t>(tensor.nbytes());
  };
  for (const NamedTensors* tensors : {&checkpoint.buffers, &checkpoint.optimizer, &checkpoint.generators})
    add(*tensors);
  for (const auto& [state, tensors] : checkpoint.states) add(tensors);
  return bytes;
}

/// `index` keeps the order, which names with slashes (groups in the file) would not.
h5::DataSet write_named(h5::Group& group, const std::string& name, const at::Tensor& tensor, int64_t index) {
  h5::DataSet dataset = group.write_tensor(name, tensor);
  dataset.set_attribute("index", index);
  return dataset;
}

void write_tensors(h5::File& file, const std::string& name, const NamedTensors& tensors) {
  h5::Group group = file.create_group(name);
  int64_t index = 0;
  for (const auto& [tensor_name, tensor] : tensors) write_named(group, tensor_name, tensor, index++);
}

void write_model(h5::File& file, const std::vector<ParameterInfo>& parameters) {
  h5::Group group = file.create_group("model");
  int64_t index = 0;
  for (const ParameterInfo& parameter : parameters) {
    h5::DataSet dataset = write_named(group, parameter.name, parameter.tensor, index++);
    dataset.set_attribute("layer", parameter.layer);
    dataset.set_attribute("kind", std::string(to_string(parameter.kind)));
  }
}

struct Found {
  std::string name;
  int64_t index;
};

void find_datasets(const h5::Group& group, const std::string& prefix, std::vector<Found>& found) {
  for (const std::string& name : group.dataset_names()) {
    found.push_back({prefix + name, group.dataset(name).attribute_as<int64_t>("index")});
  }
  for (const std::string& name : group.group_names())
    find_datasets(group.group(name), prefix + name + "/", found);
}

/// All datasets below the group, in the order in which they were written.
std::vector<std::string> dataset_names_below(const h5::Group& group) {
  std::vector<Found> found;
  find_datasets(group, "", found);
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.index < b.index; });
  std::vector<std::string> names;
  for (Found& dataset : found) names.push_back(std::move(dataset.name));
  return names;
}

NamedTensors read_tensors(const h5::File& file, const std::string& name) {
  const h5::Group group = file.group(name);
  NamedTensors tensors;
  for (const std::string& tensor : dataset_names_below(group)) {
    tensors.emplace_back(tensor, group.dataset(tensor).read_tensor());
  }
  return tensors;
}

ParameterKind kind_of(const h5::DataSet& dataset) {
  const std::string name = dataset.attribute_as<std::string>("kind");
  try {
    return parameter_kind(name);
  } catch (const ConfigError&) {
    throw IoError(fmt::format("{}: {} has the unknown kind \"{}\"", dataset.file(), dataset.path(), name));
  }
}

std::vector<ParameterInfo> read_model(const h5::File& file) {
  const h5::Group group = file.group("model");
  std::vector<ParameterInfo> parameters;
  for (const std::string& name : dataset_names_below(group)) {
    const h5::DataSet dataset = group.dataset(name);
    parameters.push_back(
        {name, dataset.attribute_as<std::string>("layer"), kind_of(dataset), dataset.read_tensor()});
  }
  return parameters;
}

// Whatever other group there is holds the state of a hook.
bool is_of_every_checkpoint(const std::string& group) {
  static const std::set<std::string> names{"model", "buffers", "optimizer", "generators", "progress", "data"};
  return names.count(group) > 0;
}

}  // namespace

void Checkpoint::add_state(const std::string& name, NamedTensors tensors) {
  if (!states.emplace(name, std::move(tensors)).second)
    throw std::logic_error("two hooks keep a state " + name);
}

const NamedTensors& Checkpoint::state(const std::string& name) const {
  static const NamedTensors none;
  const auto found = states.find(name);
  return found == states.end() ? none : found->second;
}

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  h5::File file = create_schema_file(path, kCheckpointSchema, bytes_of(checkpoint));
  file.set_attribute("run_id", checkpoint.run_id);
  file.set_attribute("config_id", checkpoint.config_id);
  file.set_attribute("label", checkpoint.label);
  file.set_attribute("update", checkpoint.update);
  file.set_attribute("journal_offset", static_cast<int64_t>(checkpoint.journal_offset));
  file.write_text("config", checkpoint.config);
  write_model(file, checkpoint.parameters);
  write_tensors(file, "buffers", checkpoint.buffers);
  write_tensors(file, "optimizer", checkpoint.optimizer);
  write_tensors(file, "generators", checkpoint.generators);
  for (const auto& [name, tensors] : checkpoint.states) write_tensors(file, name, tensors);
  file.create_group("progress").set_attributes({checkpoint.progress.begin(), checkpoint.progress.end()});
  file.create_group("data").set_attributes(checkpoint.data);
  file.save();
}

int64_t read_checkpoint_update(const std::string& path) {
  const std::optional<Seal> seal = read_seal(path);
  if (seal && seal->kind == kCheckpointSchema) return seal->update;
  return open_schema_file(path, kCheckpointSchema).attribute_as<int64_t>("update");
}

Checkpoint read_checkpoint(const std::string& path) {
  const h5::File file = open_schema_file(path, kCheckpointSchema);
  Checkpoint checkpoint;
  checkpoint.run_id = file.attribute_as<std::string>("run_id");
  checkpoint.config_id = file.attribute_as<std::string>("config_id");
  checkpoint.label = file.attribute_as<std::string>("label");
  checkpoint.update = file.attribute_as<int64_t>("update");
  checkpoint.journal_offset = static_cast<uint64_t>(file.attribute_as<int64_t>("journal_offset"));
  checkpoint.config = file.dataset("config").read_text();
  checkpoint.parameters = read_model(file);
  checkpoint.buffers = read_tensors(file, "buffers");
  checkpoint.optimizer = read_tensors(file, "optimizer");
  checkpoint.generators = read_tensors(file, "generators");
  for (const std::string& name : file.group_names())
    if (!is_of_every_checkpoint(name)) checkpoint.add_state(name, read_tensors(file, name));
  for (auto& [name, value] : file.group("progress").attributes())
    checkpoint.progress.emplace(name, std::move(value));
  checkpoint.data = file.group("data").attributes();
  return checkpoint;
}

}  // namespace basin
