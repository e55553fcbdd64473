// Made by scripts/forecast_calibration.py --write out of results/2026-11-22-quick and -quick-tune: not to be edited.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace basin {

struct QuickSetting {
  std::string optimizer;
  double rate, floor, noise_scale;  // at 256
  std::map<int64_t, int64_t> updates;  // of the fastest trial, by batch size
};

inline constexpr int64_t kQuickExamples = 4529;
inline constexpr double kQuickCap = 362320;  // image gradients

inline const std::vector<QuickSetting> kQuickSetting = {
    {"sgd", 0.0844191, 40.361, 358.42, {{32, 784}, {256, 120}, {2048, 57}, {16384, 55}, {65536, 51}}},
    {"lars", 23.8773, 43.9, 327.88, {{32, 784}, {256, 120}, {2048, 47}, {16384, 39}, {65536, 44}}},
    {"lamb", 0.0382037, 26.266, 134.57, {{32, 705}, {256, 90}, {2048, 45}, {16384, 36}, {65536, 30}}},
};

}  // namespace basin
