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
};

template <class Options, std::unique_ptr<LandscapeTask> (*make)(LandscapeSubject&, const Options&)>
LandscapeKind landscape_kind(LandscapeKind kind) {
  kind.make_options = &basin::make_options<Options>;
  kind.make = [](LandscapeSubject& subject, const AnyOptions& options) {
    return make(subject, options_as<Options>(options));
  };
  return kind;
}

/// In the order of lists. A new kind is one file and one line in registry.cpp.
const std::vector<LandscapeKind>& landscape_kinds();

}  // namespace basin
