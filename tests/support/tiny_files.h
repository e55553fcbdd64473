// defines: tiny data files of every layout, written byte by byte, and manifests that ask for them.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "data/manifest.h"

namespace basin::testing {

/// Three classes of 2 x 2 x 3 images: a.bin and b.bin hold 3 and 2 training records, t.bin 2 test records.
Manifest tiny_cifar();
/// The same with a coarse label byte (2 values) before the class.
Manifest tiny_cifar_two_labels();
/// Three classes of 1 x 2 x 3 images: 3 training and 2 test examples in four idx files.
Manifest tiny_idx();

/// Pixel p of the record whose number over all files is r: 10 r + p. Class r mod 3, coarse label r mod 2.
std::string tiny_record(int record, bool coarse);
std::string tiny_idx_images(int first, int n);
std::string tiny_idx_labels(int first, int n);
std::string gzipped(const std::string& bytes);

using Files = std::vector<std::pair<std::string, std::string>>;  // name, bytes
Files tiny_cifar_files(bool coarse = false);
Files tiny_idx_files(bool compressed);
void write_files(const std::string& folder, const Files& files);
/// A .tar.gz of members "folder/name".
void write_archive(const std::string& path, const std::string& folder, const Files& files);

/// All elements in row-major order.
std::vector<int64_t> values(const at::Tensor& integers);
std::string slurp(const std::string& path);
void spill(const std::string& path, const std::string& bytes);
/// The text of the DataError that `action` throws; a failure message where it throws none.
std::string data_error(const std::function<void()>& action);

}  // namespace basin::testing
