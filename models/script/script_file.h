// defines: load_script(), the module of a TorchScript file; ScriptTraits, what can be said of it without running it.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <string>

#include "models/traits.h"

namespace basin {

/// The module of a file that torch.jit.save() wrote, on the CPU. ConfigError that names the file where there is none, where it can't
/// be loaded, and where `sha256` isn't empty and the contents are others.
torch::jit::Module load_script(const std::string& file, const std::string& sha256);

/// batch_statistics: some module has running statistics. dropout: some operation of its methods draws at random. Read once per file
/// contents and process.
ModelTraits script_traits(const std::string& file, const std::string& sha256);

/// A fault of torch's in one line: what was wrong, without the interpreter's traceback.
std::string script_fault(const std::exception& error);

/// A module that normalises by running statistics.
bool has_running_statistics(const torch::jit::Module& module);

}  // namespace basin
