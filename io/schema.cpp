#include "io/schema.h"

#include "core/error.h"

namespace basin {
namespace {

std::string major_of(const std::string& version) { return version.substr(0, version.find('.')); }

}  // namespace

h5::File create_schema_file(const std::string& path, const std::string& schema, int64_t expected_bytes) {
  h5::File file = h5::File::create(path, expected_bytes);
  file.set_attribute("schema_name", schema);
  file.set_attribute("schema_version", std::string(kSchemaVersion));
  return file;
}

std::string schema_of(const h5::File& file) {
  if (!file.has_attribute("schema_name") || !file.has_attribute("schema_version")) {
    throw IoError(fmt::format("{}: not a Basin file (no schema_name and schema_version)", file.file()));
  }
  const std::string schema = file.attribute_as<std::string>("schema_name");
  if (schema.rfind("basin/", 0) != 0)
    throw IoError(fmt::format("{}: not a Basin file but \"{}\"", file.file(), schema));
  const std::string version = file.attribute_as<std::string>("schema_version");
  if (major_of(version) != major_of(kSchemaVersion)) {
    throw IoError(fmt::format("{}: schema version {} of {}; this program reads {}.x", file.file(), version,
                              schema, major_of(kSchemaVersion)));
  }
  return schema;
}

h5::File open_schema_file(const std::string& path, const std::string& schema) {
  h5::File file = h5::File::open(path);
  const std::string found = schema_of(file);
  if (found != schema) throw IoError(fmt::format("{}: a {} file, not a {} file", path, found, schema));
  return file;
}

void describe(h5::DataSet& dataset, const std::string& units, const std::string& long_name,
              const std::string& definition) {
  dataset.set_attribute("units", units);
  dataset.set_attribute("long_name", long_name);
  dataset.set_attribute("definition", definition);
}

h5::DataSet write_index_scale(h5::Group& group, const std::string& name, int64_t count,
                              const std::string& long_name) {
  std::vector<int64_t> index(static_cast<size_t>(count));
  std::iota(index.begin(), index.end(), 0);
  h5::DataSet scale = group.write(name, index);
  describe(scale, "1", long_name, "index");
  scale.make_scale(name);
  return scale;
}

h5::Attributes text_attributes(const std::vector<std::pair<std::string, std::string>>& texts) {
  return {texts.begin(), texts.end()};
}

std::vector<std::pair<std::string, std::string>> texts_of(const h5::Attributes& attributes) {
  std::vector<std::pair<std::string, std::string>> texts;
  for (const auto& [name, value] : attributes) {
    if (const std::string* text = std::get_if<std::string>(&value)) texts.emplace_back(name, *text);
  }
  return texts;
}

}  // namespace basin
