#include "hessian/outside/hello.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include <set>

#include "core/dtype.h"
#include "hessian/outside/line_channel.h"

namespace basin {
namespace {

using nlohmann::json;

constexpr int64_t kMostNumbers = int64_t{1} << 40;  // what a size may come to; more is no size

[[noreturn]] void wrong(const std::string& what) { throw PartnerError("the problem's hello: " + what); }

const json& field(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) wrong(fmt::format("no \"{}\"", key));
  return *found;
}

std::string text(const json& object, const char* key) {
  const json& value = field(object, key);
  if (!value.is_string()) wrong(fmt::format("\"{}\" is no text", key));
  return value.get<std::string>();
}

int64_t count(const json& value, const std::string& what, int64_t least) {
  if (!value.is_number_integer() || value.get<int64_t>() < least || value.get<int64_t>() > kMostNumbers)
    wrong(fmt::format("{} is no number of at least {}", what, least));
  return value.get<int64_t>();
}

const json& list(const json& object, const char* key) {
  const json& value = field(object, key);
  if (!value.is_array()) wrong(fmt::format("\"{}\" is no list", key));
  return value;
}

/// "block.conv.weight" -> "block.conv"; a name without a dot is its own layer.
std::string layer_of(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(0, dot);
}

PartnerHello::Parameter parameter(const json& entry) {
  if (!entry.is_object()) wrong("an entry of \"parameters\" is no object");
  PartnerHello::Parameter found;
  found.name = text(entry, "name");
  if (found.name.empty()) wrong("a parameter without a name");
  found.layer = entry.contains("layer") ? text(entry, "layer") : layer_of(found.name);
  try {
    found.kind = parameter_kind(text(entry, "kind"));
  } catch (const ConfigError& error) {
    wrong(fmt::format("{}: {}", found.name, error.what()));
  }
  int64_t numbers = 1;
  for (const json& extent : list(entry, "shape")) {
    found.shape.push_back(count(extent, fmt::format("an extent of {}", found.name), 1));
    numbers *= found.shape.back();
    if (numbers > kMostNumbers) wrong(found.name + " is larger than any memory");
  }
  return found;
}

Answer answer_named(const std::string& name) {
  for (const Answer answer : all_answers())
    if (name == to_string(answer) && answer != Answer::logits && answer != Answer::layers) return answer;
  wrong(fmt::format("unknown answer \"{}\"", name));
}

}  // namespace

int64_t PartnerHello::size() const {
  int64_t size = 0;
  for (const Parameter& parameter : parameters) size += c10::multiply_integers(parameter.shape);
  return size;
}

PartnerHello parse_hello(const std::string& line) {
  const json said = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!said.is_object()) wrong("no JSON object");
  const int64_t protocol = count(field(said, "hello"), "\"hello\"", 1);
  if (protocol != kProtocol) wrong(fmt::format("speaks protocol {}, this program {}", protocol, kProtocol));
  PartnerHello hello;
  std::set<std::string> names;
  int64_t numbers = 0;
  for (const json& entry : list(said, "parameters")) {
    hello.parameters.push_back(parameter(entry));
    if (!names.insert(hello.parameters.back().name).second)
      wrong(fmt::format("two parameters are named \"{}\"", hello.parameters.back().name));
    numbers += c10::multiply_integers(hello.parameters.back().shape);
    if (numbers > kMostNumbers) wrong("more numbers than any memory holds");
  }
  if (names.empty()) wrong("no parameters");
  const std::string dtype = text(said, "dtype");
  if (dtype != "float32" && dtype != "float64")
    wrong(fmt::format("dtype \"{}\" is not float32 or float64", dtype));
  hello.dtype = scalar_type(dtype);
  hello.examples = count(field(said, "examples"), "\"examples\"", 1);
  for (const json& name : list(said, "answers")) {
    if (!name.is_string()) wrong("an entry of \"answers\" is no text");
    hello.answers.push_back(answer_named(name.get<std::string>()));
  }
  if (hello.answers.empty()) wrong("answers nothing");
  if (said.contains("loss_units")) hello.loss_units = text(said, "loss_units");
  if (said.contains("by_example")) {
    if (!said["by_example"].is_boolean()) wrong("\"by_example\" is neither true nor false");
    hello.by_example = said["by_example"].get<bool>();
  }
  return hello;
}

}  // namespace basin
