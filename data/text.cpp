// Texts as windows of tokens, each with the token that follows.
#include "data/text.h"

#include "core/error.h"
#include "core/files.h"
#include "core/hash.h"

namespace basin {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kBytes = 256;

/// The bytes of a character of UTF-8 by its first; 0 for none.
size_t length_of_character(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return 2;
  if (first >= 0xE0 && first < 0xF0) return 3;
  return first >= 0xF0 && first < 0xF5 ? 4 : 0;
}

std::vector<std::string_view> characters_of(const std::string& text, const std::string& where) {
  std::vector<std::string_view> characters;
  characters.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t length = length_of_character(static_cast<unsigned char>(text[i]));
    bool whole = length > 0 && i + length <= text.size();
    for (size_t k = 1; whole && k < length; ++k)
      whole = (static_cast<unsigned char>(text[i + k]) & 0xC0) == 0x80;
    if (!whole)
      throw DataError(
          fmt::format("{}: byte {} is no UTF-8; data.tokens = \"bytes\" takes any file", where, i));
    characters.emplace_back(text.data() + i, length);
    i += length;
  }
  return characters;
}

std::string name_of(std::string_view character) {
  if (character == "\n") return "\\n";
  if (character == "\t") return "\\t";
  if (character == "\r") return "\\r";
  if (character == " ") return "space";
  const auto first = static_cast<unsigned char>(character.front());
  return first < 0x20 || first == 0x7F ? fmt::format("0x{:02x}", first) : std::string(character);
}

/// Fills data.class_names; int64 [tokens].
at::Tensor tokens_of(const std::string& text, const TextFile& file, const DataOptions& options,
                     Dataset& data) {
  if (options.tokens == "bytes") {
    for (int64_t byte = 0; byte < kBytes; ++byte) data.class_names.push_back(fmt::format("0x{:02x}", byte));
    const auto bytes =
        at::from_blob(const_cast<char*>(text.data()), {static_cast<int64_t>(text.size())}, at::kByte);
    return bytes.to(at::kLong);
  }
  const std::vector<std::string_view> characters = characters_of(text, file.where);
  std::map<std::string_view, int64_t> number;  // sorted, so in the order of code points
  for (const std::string_view character : characters) number[character] = 0;
  for (auto& [character, value] : number) {
    value = static_cast<int64_t>(data.class_names.size());
    data.class_names.push_back(name_of(character));
  }
  at::Tensor tokens = at::empty({static_cast<int64_t>(characters.size())}, at::kLong);
  auto* out = tokens.mutable_data_ptr<int64_t>();
  for (const std::string_view character : characters) *out++ = number.at(character);
  return tokens;
}

/// Windows of `context` tokens that begin every `stride`; each token's label is the one after it. Views: nothing is copied.
Split windows_of(const at::Tensor& tokens, int64_t context, int64_t stride, const std::string& where) {
  const int64_t last_start = tokens.size(0) - context - 1;
  if (last_start < 0)
    throw DataError(
        fmt::format("{}: {} tokens, fewer than a window of data.context = {} and the one after it", where,
                    tokens.size(0), context));
  const int64_t n = last_start / stride + 1;
  const auto windows = [&](int64_t first) {
    return tokens.narrow(0, first, tokens.size(0) - first)
        .as_strided({n, context}, {stride, 1}, tokens.storage_offset() + first);
  };
  return {windows(0), windows(1), at::arange(n, at::kLong)};
}

int64_t share_of(double share, int64_t tokens) {
  return static_cast<int64_t>(std::llround(share * static_cast<double>(tokens)));
}

}  // namespace

TextFile read_text_file(const std::string& path) {
  if (!fs::exists(path)) throw DataError("missing data: " + path + " does not exist");
  if (fs::is_directory(path)) throw DataError(path + ": is a folder; the file of a text is expected");
  return {path, read_file(path)};
}

Dataset text_windows(const std::string& name, const TextFile& file, const DataOptions& options) {
  Dataset data;
  data.name = name;
  data.sha256 = sha256_hex(file.bytes.data(), file.bytes.size());
  const at::Tensor tokens = tokens_of(file.bytes, file, options, data);
  const int64_t total = tokens.size(0), test = share_of(options.test_share, total);
  const int64_t rest = total - test, validation = share_of(options.validation, rest);
  const int64_t stride = options.stride > 0 ? options.stride : options.context;
  const auto part = [&](const char* split, int64_t first, int64_t count, int64_t every) {
    return windows_of(tokens.narrow(0, first, count), options.context, every,
                      fmt::format("{} split of {}", split, file.where));
  };
  data.train = part("training", 0, rest - validation, stride);
  if (validation > 0) data.validation = part("validation", rest - validation, validation, options.context);
  data.test = part("test", rest, test, options.context);
  return data;
}

}  // namespace basin
