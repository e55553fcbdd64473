// What options refuse, in one line that names them.
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/optim/optim_support.h"

namespace basin {
namespace {

using namespace testing;

std::string config_error_of(const std::string& name, const std::vector<std::string>& settings) {
  try {
    make_test_optimizer(name, settings, {make_parameter("fc.weight", ParameterKind::weight, {1, 2})});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

TEST(BadOptimizerOptions, AreNamed) {
  for (const OptimizerEntry& entry : optimizer_registry()) {
    if (!entry.moments) continue;
    const std::string& name = entry.name;
    EXPECT_NE(config_error_of(name, {"beta2=1.0"}).find("beta2 = 1"), std::string::npos);
    EXPECT_NE(config_error_of(name, {"eps=-1e-8"}).find("eps"), std::string::npos);
  }
  EXPECT_NE(config_error_of("sgd", {"momentum=1.0"}).find("momentum"), std::string::npos);
  EXPECT_NE(config_error_of("sgd", {"nesterov=true", "momentum=0.0"}).find("nesterov"), std::string::npos);
  EXPECT_NE(config_error_of("lars", {"denominator=momentum"}).find("ratio_in"), std::string::npos);
  EXPECT_NE(config_error_of("lars", {"preset=optax", "zero_norm_drops_decay=true"}).find("decayed_gradient"),
            std::string::npos);
  EXPECT_NE(config_error_of("lars", {"trust_coefficient=0.0"}).find("trust_coefficient"), std::string::npos);
  EXPECT_NE(config_error_of("lamb", {"exclude_from_trust=[\"biases\"]"}).find("biases"), std::string::npos);
  EXPECT_NE(config_error_of("lbfgs", {"lr_factors=[\"bias=2\"]"}).find("unknown key \"lr_factors\""),
            std::string::npos);
  EXPECT_NE(config_error_of("adagrad", {})
                .find(fmt::format("known: {}", fmt::join(names_of(optimizer_registry()), ", "))),
            std::string::npos);
}

}  // namespace
}  // namespace basin
