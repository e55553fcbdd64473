#include "sweep/collect/sources.h"

#include <algorithm>
#include <set>

#include "study/registered.h"
#include "study/study.h"
#include "sweep/collect/columns.h"

namespace basin {
namespace {

/// Settings and questions of the study.
std::set<std::string> content_of(const SourceEntry& source) {
  const Study study = parse_study(source.study, source.folder + "/study.toml", {});
  std::set<std::string> content;
  for (const Cell& cell : expand(study)) content.insert(cell.options.config_id());
  for (const Claim& claim : claims_of(study.contrasts, study.hypotheses)) content.insert(claim.hash);
  return content;
}

}  // namespace

void write_sources(h5::File& file, const std::vector<SourceEntry>& sources) {
  std::vector<std::string> folders, studies;
  std::vector<int64_t> runs;
  for (const SourceEntry& source : sources) {
    folders.push_back(source.folder);
    studies.push_back(source.study);
    runs.push_back(source.runs);
  }
  h5::Group group = file.create_group("sources");
  group.set_attribute("long_name", std::string("one row per sweep that was merged"));
  h5::DataSet scale = group.write_texts("folder", folders);
  describe(scale, {"", "folder of the sweep, as it was named", "run-source"});
  scale.make_scale("folder");
  h5::DataSet study = group.write_texts("study", studies);
  describe(study, {"", "text of its study file", "run-source"});
  study.attach_scale(0, scale);
  h5::DataSet count = group.write("runs", runs);
  describe(count, {"runs", "runs in it", "run-source"});
  count.attach_scale(0, scale);
}

std::string study_of(const std::vector<SourceEntry>& sources) {
  const auto is_first = [&](const SourceEntry& source) { return source.study == sources.front().study; };
  if (std::all_of(sources.begin(), sources.end(), is_first)) return sources.front().study;
  std::vector<std::set<std::string>> contents;
  for (const SourceEntry& source : sources) {
    if (source.study.empty()) return "";
    contents.push_back(content_of(source));
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto has_all_of = [&](const std::set<std::string>& other) {
      return std::includes(contents[i].begin(), contents[i].end(), other.begin(), other.end());
    };
    if (std::all_of(contents.begin(), contents.end(), has_all_of)) return sources[i].study;
  }
  return "";
}

}  // namespace basin
