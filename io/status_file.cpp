#include "io/status_file.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"
#include "core/math/nan.h"

namespace basin {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

/// A whole number stands without a point, as in older files; NaN and infinity, which JSON hasn't, become null.
ordered_json number(double value) {
  if (std::abs(value) < 9e15 && value == std::floor(value)) return static_cast<int64_t>(value);
  return value;
}

/// The fields of one object, each of the type asked for. Keys that we don't know are ignored.
class StatusFields {
 public:
  explicit StatusFields(std::string path) : path_(std::move(path)) {
    const std::string text = read_file(path_);
    try {
      fields_ = json::parse(text);
    } catch (const json::parse_error& error) {
      malformed(std::max<size_t>(error.byte, 1) - 1, text.size());
    } catch (const json::exception& error) {  // a number beyond all doubles
      throw IoError(fmt::format("{}: {}", path_, error.what()));
    }
    if (!fields_.is_object()) malformed(0, text.size());
  }

  std::string text(const char* key) const {
    const auto found = fields_.find(key);
    if (found == fields_.end() || !found->is_string()) wrong(key, "missing or not a string");
    return found->get<std::string>();
  }
  /// NaN for null.
  double number(const char* key) const {
    const auto found = fields_.find(key);
    if (found == fields_.end() || !(found->is_number() || found->is_null()))
      wrong(key, "missing or not a number");
    return found->is_null() ? kNaN : found->get<double>();
  }
  int64_t integer(const char* key) const {
    const double value = number(key);
    if (!(std::abs(value) < 9e15)) wrong(key, "not a whole number");
    return static_cast<int64_t>(value);
  }

 private:
  [[noreturn]] void malformed(size_t byte, size_t size) const {
    throw IoError(fmt::format("{}: malformed at byte {} of {}", path_, byte, size));
  }
  [[noreturn]] void wrong(const char* key, const char* what) const {
    throw IoError(fmt::format("{}: \"{}\" is {}", path_, key, what));
  }

  std::string path_;
  json fields_;
};

}  // namespace

void write_status(const std::string& path, const RunStatus& s) {
  const ordered_json fields = {{"run_id", s.run_id},     {"status", to_string(s.status)},
                               {"message", s.message},   {"update", s.update},
                               {"done", number(s.done)}, {"images_per_second", number(s.images_per_second)},
                               {"loss", number(s.loss)}, {"pid", s.pid},
                               {"host", s.host},         {"updated_utc", s.updated_utc}};
  // Bytes that are no UTF-8 (a file's name in a message) become U+FFFD.
  const std::string text = fields.dump(1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
  write_file_atomically(path, text + "\n");
}

RunStatus read_status(const std::string& path) {
  const StatusFields fields(path);
  RunStatus s;
  s.run_id = fields.text("run_id");
  s.status = parse_run_state(fields.text("status"), path);
  s.message = fields.text("message");
  s.update = fields.integer("update");
  s.done = fields.number("done");
  s.images_per_second = fields.number("images_per_second");
  s.loss = fields.number("loss");
  s.pid = fields.integer("pid");
  s.host = fields.text("host");
  s.updated_utc = fields.text("updated_utc");
  return s;
}

RunStatus status_of(const std::string& run_folder, const std::string& run_id) {
  RunStatus unknown;
  unknown.run_id = run_id;
  if (!std::filesystem::exists(run_folder + "/status.json")) return unknown;
  try {
    return read_status(run_folder + "/status.json");
  } catch (const IoError&) {
    return unknown;  // half a file of a full disk: the run says anew where it stands
  }
}

}  // namespace basin
