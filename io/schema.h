// defines: the names of the schemas, and opening a file of one of them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "io/h5.h"

namespace basin {

inline constexpr const char* kRunSchema = "basin/run";
inline constexpr const char* kCheckpointSchema = "basin/checkpoint";
inline constexpr const char* kProbeSchema = "basin/probe";
inline constexpr const char* kSweepSchema = "basin/sweep";
inline constexpr const char* kTuneSchema = "basin/tune";
inline constexpr const char* kSurfaceSchema = "basin/surface";
inline constexpr const char* kTileSchema = "basin/tile";
inline constexpr const char* kAuditSchema = "basin/audit";
inline constexpr const char* kScalingSchema = "basin/scaling";
/// Semantic version of all of them: a reader accepts every file of its own major version.
inline constexpr const char* kSchemaVersion = "1.3.0";

/// An empty file with schema_name and schema_version.
h5::File create_schema_file(const std::string& path, const std::string& schema, int64_t expected_bytes = 0);
/// IoError where the file is missing, truncated, foreign, of another schema or of another major version.
h5::File open_schema_file(const std::string& path, const std::string& schema);
/// The schema_name of a file of our major version.
std::string schema_of(const h5::File& file);

/// The attributes that every dataset of ours carries. `definition` is an anchor in docs (definitions.md, probes.md:
/// tests/docs/test_definitions.py), or a sentence.
void describe(h5::DataSet& dataset, const std::string& units, const std::string& long_name,
              const std::string& definition);
/// 0, 1, ..., count-1 as a dimension scale.
h5::DataSet write_index_scale(h5::Group& group, const std::string& name, int64_t count,
                              const std::string& long_name);
/// Texts as attributes, in order: provenance.
h5::Attributes text_attributes(const std::vector<std::pair<std::string, std::string>>& texts);
std::vector<std::pair<std::string, std::string>> texts_of(const h5::Attributes& attributes);

}  // namespace basin
