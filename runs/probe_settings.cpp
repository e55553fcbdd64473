#include "runs/probe_settings.h"

#include <filesystem>

#include "core/error.h"
#include "core/hash.h"

namespace basin {
namespace {

namespace fs = std::filesystem;

std::string short_name(const std::string& label, const std::string& probe) {
  return label + "." + probe + ".h5";
}

// The settings' hash in the file that has the short name; nothing where there is none that can be read.
std::optional<std::string> stored_fingerprint(const std::string& path) {
  if (!fs::exists(path)) return std::nullopt;
  try {
    for (const auto& [name, value] : read_probe_file(path).attributes) {
      if (name == "settings") return std::get<std::string>(value);
    }
    return "";
  } catch (const IoError&) {  // it is measured again
    return std::nullopt;
  }
}

void append(std::string& text, const std::string& name, const at::Tensor& tensor) {
  const at::Tensor whole = tensor.detach().cpu().contiguous();
  text +=
      fmt::format("{} {} [{}]\n", name, c10::toString(whole.scalar_type()), fmt::join(whole.sizes(), ", "));
  text.append(static_cast<const char*>(whole.const_data_ptr()), static_cast<size_t>(whole.nbytes()));
}

}  // namespace

ProbeAttributes chosen_settings(const std::string& probe, int64_t examples, const std::string& dtype,
                                const OptionSets& probe_options) {
  ProbeAttributes chosen = {
      {"set", std::string("train")}, {"n_examples", examples}, {"dtype", dtype}, {"tf32", false}};
  for (const Option& option : probe_options.at(probe).view("option"))
    if (option.traits.role != OptionRole::execution) chosen.emplace_back(option.key, option.get());
  return chosen;
}

std::string settings_fingerprint(const ProbeAttributes& chosen) {
  std::string text;
  for (const auto& [key, value] : chosen) text += key + " = " + to_toml(value) + "\n";
  return sha256_hex(text).substr(0, 8);
}

std::string probe_path(const std::string& run_folder, const std::string& label, const std::string& probe,
                       const std::string& fingerprint, const std::optional<std::string>& studys) {
  const std::string folder = run_folder + "/probes/", own = folder + short_name(label, probe);
  const std::string owner = studys ? *studys : stored_fingerprint(own).value_or(fingerprint);
  return owner == fingerprint ? own : folder + label + "." + probe + "." + fingerprint + ".h5";
}

bool is_studys_own(const std::string& path, const ProbeRecord& record) {
  return fs::path(path).filename() == short_name(record.checkpoint, record.probe);
}

std::string content_hash(const Checkpoint& checkpoint) {
  std::string text;
  for (const ParameterInfo& parameter : checkpoint.parameters) append(text, parameter.name, parameter.tensor);
  for (const auto& [name, tensor] : checkpoint.buffers) append(text, name, tensor);
  return sha256_hex(text);
}

bool same_settings(const ProbeRecord& record, const std::string& run_id, const ProbeAttributes& settings) {
  if (record.status == ProbeStatus::failed || record.run_id != run_id) return false;
  return std::all_of(settings.begin(), settings.end(), [&](const auto& setting) {
    return std::any_of(record.attributes.begin(), record.attributes.end(), [&](const auto& stored) {
      return stored.first == setting.first && to_toml(stored.second) == to_toml(setting.second);
    });
  });
}

}  // namespace basin
