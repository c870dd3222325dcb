#include "config/json_schema.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "config/support.hpp"

namespace stratagem {
namespace {

using nlohmann::json;

json schema() {
  return json::parse(json_schema(test::names()));
}

/// Of the section `strategy` where it names `strategy`.
json branch_of(std::string const& strategy) {
  auto const all = schema();
  for (auto const& branch : all["properties"]["strategy"]["allOf"])
    if (branch["if"]["properties"]["name"]["const"] == strategy) return branch["then"];
  return {};
}

TEST(JsonSchema, HasEveryKeyAndNoOther) {
  auto const all = schema();
  std::size_t keys = 0;
  std::vector<std::string> const none;
  for (auto const& key : describe_keys(test::names())) {
    auto const section = section_of(key.path), name = name_in_section(key.path);
    auto const& properties =
        section.empty() ? all["properties"] : all["properties"][section]["properties"];
    if (section != "strategy") {
      EXPECT_EQ(properties[name]["description"], key.meaning) << key.path;
      ++keys;
    }
    for (auto const& strategy : section == "strategy" ? key.strategies : none)
      EXPECT_TRUE(branch_of(strategy)["properties"].contains(name)) << key.path;
  }
  std::size_t there = all["properties"].size() - 1;  // schema; each section has its own
  for (auto const& [name, section] : all["properties"].items()) {
    if (name == "schema") continue;
    if (name != "strategy") there += section["properties"].size() - 1;
    if (name != "strategy") {
      EXPECT_EQ(section["additionalProperties"], false) << name;
    }
  }
  EXPECT_EQ(there, keys);
  EXPECT_EQ(all["additionalProperties"], false);
  EXPECT_EQ(all["required"], (json{"data", "model", "strategy"}));
}

TEST(JsonSchema, TellsTypesRangesAndDefaults) {
  auto const properties = schema()["properties"];
  auto const value_of = [&](std::string const& section, std::string const& key) {
    return properties[section]["properties"][key];
  };
  EXPECT_EQ(value_of("optimizer", "momentum")["anyOf"][0],
            json::parse(R"({"type": "number", "minimum": 0, "exclusiveMaximum": 1})"));
  EXPECT_EQ(value_of("optimizer", "lr")["default"], 0.01);
  EXPECT_EQ(value_of("data", "input_size")["anyOf"][0],
            json::parse(R"({"type": "integer", "minimum": 1, "maximum": 4096})"));
  EXPECT_EQ(value_of("model", "name")["anyOf"][0]["enum"], (json{"lenet", "vgg16", "resnet50"}));
  EXPECT_FALSE(value_of("model", "name").contains("default"));
  EXPECT_EQ(value_of("model", "dropout")["default"], true);
  EXPECT_EQ(value_of("run", "device")["default"], "auto");
  EXPECT_EQ(branch_of("ddp")["properties"]["overlap"]["anyOf"][0]["type"], "boolean");
  EXPECT_EQ(branch_of("ddp")["additionalProperties"], false);
  EXPECT_FALSE(branch_of("serial")["properties"].contains("overlap"));
  EXPECT_FALSE(branch_of("ps")["properties"]["staleness"].contains("default")) << "the mode's";
  EXPECT_FALSE(value_of("advanced", "gate").contains("default")) << "the mode's";
}

}  // namespace
}  // namespace stratagem
