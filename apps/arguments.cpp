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

}  // namespace basin
