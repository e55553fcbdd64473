#include "io/status_file.h"

#include <cstdlib>

#include "core/error.h"
#include "core/files.h"
#include "core/options.h"

namespace basin {
namespace {

/// TOML's basic strings as to_toml() writes them are JSON strings too: control characters escaped, UTF-8 left as it is.
std::string quoted(const std::string& text) { return to_toml(OptionValue(text)); }

/// JSON has no NaN and no infinity.
std::string number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

void append_utf8(std::string& out, unsigned code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

/// One flat JSON object: strings, numbers, null, true and false. Keys that we don't know are kept and ignored.
class FlatJson {
 public:
  FlatJson(std::string path, std::string text) : path_(std::move(path)), text_(std::move(text)) { parse(); }

  std::string text(const std::string& key) const {
    const auto found = texts_.find(key);
    if (found == texts_.end()) throw IoError(fmt::format("{}: \"{}\" is missing or no string", path_, key));
    return found->second;
  }
  double number(const std::string& key) const {
    const auto found = numbers_.find(key);
    if (found == numbers_.end()) throw IoError(fmt::format("{}: \"{}\" is missing or no number", path_, key));
    return found->second;
  }
  int64_t integer(const std::string& key) const {
    const double value = number(key);
    if (!(std::abs(value) < 9e15)) throw IoError(fmt::format("{}: \"{}\" is no whole number", path_, key));
    return static_cast<int64_t>(value);
  }

 private:
  [[noreturn]] void malformed() const {
    throw IoError(fmt::format("{}: malformed at byte {} of {}", path_, position_, text_.size()));
  }
  char peek() {
    while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_])))
      ++position_;
    if (position_ >= text_.size()) malformed();
    return text_[position_];
  }
  void expect(char c) {
    if (peek() != c) malformed();
    ++position_;
  }

  void parse() {
    expect('{');
    if (peek() == '}') return;
    for (;;) {
      const std::string key = parse_string();
      expect(':');
      if (peek() == '"')
        texts_[key] = parse_string();
      else
        numbers_[key] = parse_bare();
      if (peek() == '}') return;
      expect(',');
    }
  }

  std::string parse_string() {
    expect('"');
    std::string out;
    for (; position_ < text_.size(); ++position_) {
      const char c = text_[position_];
      if (c == '"') {
        ++position_;
        return out;
      }
      if (c != '\\')
        out += c;
      else
        parse_escape(out);
    }
    malformed();
  }

  /// Leaves the position on the escape's last character.
  void parse_escape(std::string& out) {
    if (++position_ >= text_.size()) malformed();
    switch (text_[position_]) {
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 't':
        out += '\t';
        break;
      case 'b':
        out += '\b';
        break;
      case 'f':
        out += '\f';
        break;
      case 'u': {
        if (position_ + 4 >= text_.size()) malformed();
        append_utf8(out,
                    static_cast<unsigned>(std::strtoul(text_.substr(position_ + 1, 4).c_str(), nullptr, 16)));
        position_ += 4;
        break;
      }
      default:
        out += text_[position_];
    }
  }

  double parse_bare() {
    static const std::map<std::string, double> words{{"null", NAN}, {"true", 1}, {"false", 0}};
    for (const auto& [word, value] : words) {
      if (text_.compare(position_, word.size(), word) == 0) {
        position_ += word.size();
        return value;
      }
    }
    const char* start = text_.c_str() + position_;
    char* end = nullptr;
    const double value = std::strtod(start, &end);
    if (end == start) malformed();
    position_ += static_cast<size_t>(end - start);
    return value;
  }

  std::string path_, text_;
  size_t position_ = 0;
  std::map<std::string, std::string> texts_;
  std::map<std::string, double> numbers_;
};

}  // namespace

void write_status(const std::string& path, const RunStatus& s) {
  write_file_atomically(
      path,
      fmt::format(
          "{{\"run_id\": {}, \"status\": {}, \"message\": {}, \"update\": {}, \"done\": {},\n"
          " \"images_per_second\": {}, \"loss\": {}, \"pid\": {}, \"host\": {}, \"updated_utc\": {}}}\n",
          quoted(s.run_id), quoted(to_string(s.status)), quoted(s.message), s.update, number(s.done),
          number(s.images_per_second), number(s.loss), s.pid, quoted(s.host), quoted(s.updated_utc)));
}

RunStatus read_status(const std::string& path) {
  const FlatJson json(path, read_file(path));
  RunStatus s;
  s.run_id = json.text("run_id");
  s.status = parse_run_state(json.text("status"), path);
  s.message = json.text("message");
  s.update = json.integer("update");
  s.done = json.number("done");
  s.images_per_second = json.number("images_per_second");
  s.loss = json.number("loss");
  s.pid = json.integer("pid");
  s.host = json.text("host");
  s.updated_utc = json.text("updated_utc");
  return s;
}

}  // namespace basin
