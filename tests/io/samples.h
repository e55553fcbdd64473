// defines: small records that the tests of io write, and expect_io_error().
#pragma once

#include <gmock/gmock.h>

#include <functional>
#include <string>

#include "io/checkpoint.h"
#include "io/probe_file.h"
#include "io/record.h"

namespace basin::testing {

/// Two tables (one with a [row, 3] column), one split of 11 outcomes, two parameters, every type of option.
RunRecord sample_run();
/// 2 parameters, a running statistic, momentum with a scalar counter, a generator's bytes.
Checkpoint sample_checkpoint();
ProbeRecord sample_probe();

void write_bytes(const std::string& path, const std::string& bytes);

/// The call throws an IoError of one line with these parts.
void expect_io_error(const std::function<void()>& call, const std::vector<std::string>& parts);

/// Equal, NaN in the same places.
void expect_same(const std::vector<double>& a, const std::vector<double>& b);
void expect_same(const RunRecord& a, const RunRecord& b);

}  // namespace basin::testing
