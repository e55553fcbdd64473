// defines: write_script_subject(), a network and examples of the user's as the folder of a run that was never trained.
#pragma once

#include <cstdint>
#include <string>

namespace basin {

struct ScriptSubject {
  std::string script;  // a TorchScript file
  std::string data;    // what set = "arrays" reads, or the name of a set that needs no path
  std::string loss = "cross_entropy";
  int64_t classes = 0;  // of arrays, where the largest don't occur
};

/// Writes OUT/runs/<run_id>/ckpt/end.h5, the weights and running statistics as the file has them, and returns the run's folder: what is
/// measured on checkpoints is measured on it, and nothing else of a run is there. ConfigError and DataError for a network and
/// examples that don't fit.
std::string write_script_subject(const ScriptSubject& subject, const std::string& out);

}  // namespace basin
