// defines: Error and its five kinds, each with the exit code that `basin` ends with; one_line().
#pragma once

#include <stdexcept>
#include <string>

namespace basin {

/// Misuse or an outside fault, reported in one line that names the file, key and value. Caught once, in main.
/// Divergence and non-convergence are results with a status, never an Error.
class Error : public std::runtime_error {
 public:
  Error(int exit_code, const std::string& message) : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

/// An option, study file or command line that makes no sense.
struct ConfigError : Error {
  explicit ConfigError(const std::string& m) : Error(2, m) {}
};
/// A data set that is missing, truncated, or not what it claims to be.
struct DataError : Error {
  explicit DataError(const std::string& m) : Error(3, m) {}
};
/// A file that cannot be read or written, or is not one of ours.
struct IoError : Error {
  explicit IoError(const std::string& m) : Error(4, m) {}
};
/// A device that was asked for and is not there.
struct DeviceError : Error {
  explicit DeviceError(const std::string& m) : Error(5, m) {}
};
/// Arithmetic that cannot go on where no result with a status can be given.
struct NumericError : Error {
  explicit NumericError(const std::string& m) : Error(6, m) {}
};

/// Not a fault: SIGINT or SIGTERM was seen and the state is on disk. Exit code 128 + signal.
struct Interrupted : Error {
  explicit Interrupted(int signal) : Error(128 + signal, "interrupted") {}
};

/// An exception's text for messages and status files: the first line of what(), without torch's backtrace;
/// "out of memory" for std::bad_alloc, the file and what is wrong with it for the standard library's own errors.
std::string one_line(const std::exception& error);

}  // namespace basin
