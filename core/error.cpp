#include "core/error.h"

#include <c10/util/Exception.h>

#include <filesystem>
#include <new>
#include <string_view>

namespace basin {

std::string one_line(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error)) return "out of memory";
  const auto* of_file = dynamic_cast<const std::filesystem::filesystem_error*>(&error);
  if (of_file != nullptr && !of_file->path1().empty())
    return of_file->path1().string() + ": " + of_file->code().message();
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch_error ? torch_error->what_without_backtrace() : error.what();
  const std::string line = text.substr(0, text.find('\n'));
  constexpr std::string_view kAllocator = "DefaultCPUAllocator: ";  // behind the place in its source
  const size_t allocator = line.find(kAllocator);
  return allocator == std::string::npos ? line : line.substr(allocator + kAllocator.size());
}

}  // namespace basin
