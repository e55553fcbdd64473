// defines: build_version() and similar functions: what this library was built from and with.
#pragma once

namespace basin {

/// They describe the build, not the run: later changes to the checkout don't change them. "unknown" where the
/// sources aren't a git checkout (a release archive).
const char* build_version();     // "0.1.0", of project() in CMakeLists.txt
const char* build_git_commit();  // 40 hex digits
const char* build_git_dirty();   // "true" | "false": tracked files differ from that commit
const char* build_compiler();    // "GNU 12.2.0"
const char* build_flags();       // "Release: -O2 -DNDEBUG"
const char* build_libraries();   // "eigen 3.4.0, hdf5 1.10.8, spectra 1.0.1"

}  // namespace basin
