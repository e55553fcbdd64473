// defines: LandscapeKind and the table of what `basin landscape --kind` can name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/registry.h"
#include "runs/surfaces/task.h"

namespace basin {

struct LandscapeKind {
  std::string name, help;
  size_t least = 1, most = 1;                               // checkpoints on the command line
  int64_t version = 1;                                      // raised when the same options give other numbers
  std::unique_ptr<AnyOptions> (*make_options)() = nullptr;  // in a table of the kind's name
  std::unique_ptr<LandscapeTask> (*make)(LandscapeSubject& subject, const AnyOptions& options) = nullptr;
  /// Where the loss is all that it asks for; else null. Then a problem that another process answers has it too.
  std::unique_ptr<LandscapeTask> (*make_on_terrain)(Terrain& terrain, const AnyOptions& options) = nullptr;
};

template <class Options, std::unique_ptr<LandscapeTask> (*make)(LandscapeSubject&, const Options&)>
LandscapeKind landscape_kind(LandscapeKind kind) {
  kind.make_options = &basin::make_options<Options>;
  kind.make = [](LandscapeSubject& subject, const AnyOptions& options) {
    return make(subject, options_as<Options>(options));
  };
  return kind;
}

template <class Options, std::unique_ptr<LandscapeTask> (*make)(Terrain&, const Options&)>
std::unique_ptr<LandscapeTask> make_on_subject(LandscapeSubject& subject, const Options& options) {
  return make(subject, options);
}

template <class Options, std::unique_ptr<LandscapeTask> (*make)(Terrain&, const Options&)>
LandscapeKind landscape_kind(LandscapeKind kind) {
  kind.make_on_terrain = [](Terrain& terrain, const AnyOptions& options) {
    return make(terrain, options_as<Options>(options));
  };
  return landscape_kind<Options, make_on_subject<Options, make>>(std::move(kind));
}

/// Everything that makes a landscape's numbers, in words. `options`: of every kind, under its name.
h5::Attributes recipe_of(const LandscapeKind& kind, const OptionSets& options, const Terrain& terrain,
                         const LandscapeTask& task);

/// In the order of lists. A new kind is one file and one line in registry.cpp.
const std::vector<LandscapeKind>& landscape_kinds();

}  // namespace basin
