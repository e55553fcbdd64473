#include "trainers/data_identity.h"

#include "core/error.h"

namespace basin {
namespace {

std::string text_of(const DataAttributes& attributes, const std::string& key) {
  for (const auto& [name, value] : attributes) {
    if (name != key) continue;
    const auto* text = std::get_if<std::string>(&value);
    return text ? *text : to_toml(value);
  }
  return "unknown";
}

}  // namespace

DataAttributes data_attributes(const Dataset& data) {
  return {{"name", data.name},
          {"pixels", data.pixels},
          {"sha256", data.sha256},
          {"split_hash", data.split_hash},
          {"n_train", data.train.size()},
          {"n_validation", data.validation.size()},
          {"n_test", data.test.size()},
          {"classes", data.classes()},
          {"class_names", data.class_names},
          {"mean", data.mean},
          {"std", data.std}};
}

void check_same_data(const std::string& file, const DataAttributes& stored, const DataAttributes& loaded) {
  for (const char* key : {"sha256", "split_hash", "mean", "std"}) {
    const std::string then = text_of(stored, key), now = text_of(loaded, key);
    if (then == now) continue;
    throw IoError(fmt::format("{}: made from other data ({}): {} {} there, {} in the data read now ({})",
                              file, text_of(stored, "pixels"), key, then, now, text_of(loaded, "pixels")));
  }
}

}  // namespace basin
