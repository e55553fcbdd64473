#include "apps/arguments.h"

#include <CLI/CLI.hpp>

#include <sstream>

namespace basin {

void add_set_option(CLI::App& command, std::vector<std::string>& sets) {
  command.add_option("--set", sets, "key=value in TOML syntax, e.g. --set lamb.beta1=0.9; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
}

void add_list_option(CLI::App& command, const std::string& name, std::vector<std::string>& values,
                     const std::string& help) {
  const auto split = [&values](const std::string& text) {
    std::istringstream elements(text);
    for (std::string element; std::getline(elements, element, ',');) values.push_back(element);
  };
  command.add_option_function<std::string>(name, split, help)->join(',')->type_name("A[,B...]");
}

std::string one_line(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch_error ? torch_error->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace basin
