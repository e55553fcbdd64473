// defines: PartnerHello, how a process that answers introduces its problem.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/parameter.h"
#include "hessian/problem.h"

namespace basin {

/// The version of the protocol that this program speaks (docs/operator-protocol.md).
inline constexpr int64_t kProtocol = 1;

struct PartnerHello {
  struct Parameter {
    std::string name, layer;
    ParameterKind kind = ParameterKind::weight;
    std::vector<int64_t> shape;
  };
  std::vector<Parameter> parameters;
  at::ScalarType dtype = at::kFloat;
  int64_t examples = 0;
  std::vector<Answer> answers;
  std::string loss_units = "1";
  bool by_example = true;  // losses by example take about a pass over them, not a pass for each

  int64_t size() const;  // numbers in all parameters
};

/// The line as the protocol has it; PartnerError that names the key otherwise.
PartnerHello parse_hello(const std::string& line);

}  // namespace basin
