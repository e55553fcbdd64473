// defines: read_set(), the CIFAR binary and the idx layout; make_synthetic(), make_coin_flips().
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/source_files.h"

namespace basin {

/// Train and test as in the files of a folder or archive; mean, std and the validation share are
/// load_dataset's. DataError names the file and the sizes where it isn't whole records of the manifest's
/// counts or a label is out of range. CIFAR's records: label_bytes.size() label bytes (the last is the
/// class), then channels x height x width bytes. idx files, gzip or plain, are big-endian: magic 0x803 and
/// three sizes for images, 0x801 and one for labels. Texts: data/text.h, which alone reads the options.
Dataset read_set(const Manifest& manifest, const std::string& path, const DataOptions& options = {});
Dataset parse_set(const Manifest& manifest, const std::vector<SourceFile>& files,
                  const DataOptions& options = {});

/// Ten classes of 3x32x32 images: example i has class i mod 10 and is that class's prototype (4x4 blocks of
/// 8x8 pixels and a channel, each 104 + 0..47) plus noise ((a + b)/4 - 64 from two bytes: triangular, SD 26).
/// Integers alone, from the seed stream "synthetic" of master seed 0: the same bytes everywhere, and the
/// first n examples are the same for every size.
Dataset make_synthetic(int64_t train_examples, int64_t test_examples);

/// 256 fair coins per example, image [256, 1, 1] of 0 and 255, all of one class out of 256. A channel is a
/// coin, so network inputs have mean 0 and variance 1 in each coordinate over the training split, to
/// rounding. From the seed stream "synthetic" of master seed 0, and the first n examples are the same for
/// every size. 256 bytes per example.
Dataset make_coin_flips(int64_t train_examples, int64_t test_examples);

}  // namespace basin
