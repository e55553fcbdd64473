// defines: print_json(), the one form of what --json prints (docs/json.md), and what its documents share.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

#include "io/h5.h"
#include "io/probe_file.h"
#include "io/record.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace basin {

using Json = nlohmann::ordered_json;

/// Semantic version of all documents: a reader accepts every document of its own major version.
inline constexpr const char* kJsonVersion = "1.4.0";

/// `--json`: one document on stdout and nothing else.
CLI::Option* add_json_flag(CLI::App& command, bool& json);

/// On stdout: {"schema": "basin/cli/COMMAND", "schema_version", "basin", "commit", ...}, then the members of `body`.
/// What isn't finite is null.
void print_json(const std::string& command, const Json& body);

Json json_of(const OptionValue& value);
Json json_of(const h5::Attributes& attributes);
/// Each entry of the quantity, with all that its file says about it.
Json json_of(const Quantity& quantity);
/// A probe on a checkpoint: status, settings and numbers.
Json json_of(const ProbeRecord& record);

}  // namespace basin
