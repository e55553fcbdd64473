// defines: seeds_of_prediction(), the seeds that the test runs of a prediction have to use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace basin {

/// seed i = (first 8 hex digits of SHA-256(file_hash + ":" + i), as a number, mod 2^31) + 1, for i = 1 .. count, where
/// file_hash is the SHA-256 of the prediction file in 64 lower-case hex digits. Whoever has the file can derive them
/// (scripts/forecast_seeds.py does so without this program); nobody could know them before the file was there.
std::vector<int64_t> seeds_of_hash(const std::string& file_hash, int64_t count);
/// IoError where the file can't be read or predicts no cell, ConfigError where it isn't TOML.
std::vector<int64_t> seeds_of_prediction(const std::string& path, int64_t count);

}  // namespace basin
