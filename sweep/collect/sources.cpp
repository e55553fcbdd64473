#include "sweep/collect/sources.h"

#include "sweep/collect/columns.h"

namespace basin {

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
  return std::all_of(sources.begin(), sources.end(), is_first) ? sources.front().study : "";
}

}  // namespace basin
