#include "forecast/seeds.h"

#include "core/error.h"
#include "core/hash.h"
#include "core/toml_file.h"

namespace basin {

std::vector<int64_t> seeds_of_hash(const std::string& file_hash, int64_t count) {
  std::vector<int64_t> seeds;
  for (int64_t i = 1; i <= count; ++i) {
    const std::string digits = sha256_hex(file_hash + ":" + std::to_string(i)).substr(0, 8);
    seeds.push_back(static_cast<int64_t>(std::stoul(digits, nullptr, 16) % (uint64_t{1} << 31)) + 1);
  }
  return seeds;
}

std::vector<int64_t> seeds_of_prediction(const std::string& path, int64_t count) {
  if (read_toml_tables(path, "cell", {}).tables.empty())
    throw IoError(path + ": not a prediction file of `basin forecast`: it has no [[cell]]");
  return seeds_of_hash(sha256_of_file(path), count);
}

}  // namespace basin
