#include "hessian/outside/hello.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/hessian/outside/scripted_partner.h"

namespace basin {
namespace {

using nlohmann::json;

json good() {
  return {{"hello", 1},
          {"parameters",
           {{{"name", "block.conv.weight"}, {"kind", "weight"}, {"shape", {4, 3, 2}}},
            {{"name", "scale"}, {"kind", "norm_weight"}, {"shape", json::array()}, {"layer", "norm"}}}},
          {"dtype", "float32"},
          {"examples", 100},
          {"answers", {"loss", "product"}}};
}

TEST(Hello, SaysWhatTheProblemIs) {
  const PartnerHello hello = parse_hello(good().dump());
  ASSERT_EQ(hello.parameters.size(), 2);
  EXPECT_EQ(hello.parameters[0].layer, "block.conv");
  EXPECT_EQ(hello.parameters[1].layer, "norm");
  EXPECT_EQ(hello.parameters[1].kind, ParameterKind::norm_weight);
  EXPECT_EQ(hello.size(), 25);
  EXPECT_EQ(hello.dtype, at::kFloat);
  EXPECT_EQ(hello.examples, 100);
  EXPECT_EQ(hello.answers, (std::vector<Answer>{Answer::loss, Answer::product}));
  EXPECT_EQ(hello.loss_units, "1");
  EXPECT_TRUE(hello.by_example);
  json slow = good();
  slow["by_example"] = false;
  EXPECT_FALSE(parse_hello(slow.dump()).by_example);
}

TEST(Hello, IsRefusedInOneLineThatNamesTheKey) {
  const auto said = [](const std::function<void(json&)>& change) {
    json hello = good();
    change(hello);
    return testing::said_by([&] { parse_hello(hello.dump()); });
  };
  const auto first = [](const char* key, const json& value) {
    return [=](json& hello) { hello["parameters"][0][key] = value; };
  };
  const std::string of = "the problem's hello: ";
  EXPECT_EQ(testing::said_by([] { parse_hello("hello"); }), of + "no JSON object");
  EXPECT_EQ(said([](json& h) { h.erase("hello"); }), of + "no \"hello\"");
  EXPECT_EQ(said([](json& h) { h["by_example"] = 1; }), of + "\"by_example\" is neither true nor false");
  EXPECT_EQ(said([](json& h) { h["hello"] = 2; }), of + "speaks protocol 2, this program 1");
  EXPECT_EQ(said([](json& h) { h["parameters"] = json::array(); }), of + "no parameters");
  EXPECT_EQ(said([](json& h) { h["parameters"][1]["name"] = "block.conv.weight"; }),
            of + "two parameters are named \"block.conv.weight\"");
  EXPECT_EQ(said(first("kind", "kernel")), of + "block.conv.weight: unknown parameter kind \"kernel\"; "
                                                "known: weight, bias, norm_weight, norm_bias");
  EXPECT_EQ(said(first("shape", {4, 0})), of + "an extent of block.conv.weight is no number of at least 1");
  EXPECT_EQ(said(first("shape", {1 << 30, 1 << 30, 1 << 30})),
            of + "block.conv.weight is larger than any memory");
  EXPECT_EQ(
      said(first("kind", "a\nb")),
      of + "block.conv.weight: unknown parameter kind \"a?b\"; known: weight, bias, norm_weight, norm_bias");
  EXPECT_EQ(said(first("name", 3)), of + "\"name\" is no text");
  EXPECT_EQ(said([](json& h) { h["dtype"] = "float16"; }),
            of + "dtype \"float16\" is not float32 or float64");
  EXPECT_EQ(said([](json& h) { h["examples"] = 2.5; }), of + "\"examples\" is no number of at least 1");
  EXPECT_EQ(said([](json& h) { h["answers"] = {"losss"}; }), of + "unknown answer \"losss\"");
  EXPECT_EQ(said([](json& h) { h["answers"] = {"logits"}; }), of + "unknown answer \"logits\"");
  EXPECT_EQ(said([](json& h) { h["answers"] = json::array(); }), of + "answers nothing");
}

}  // namespace
}  // namespace basin
