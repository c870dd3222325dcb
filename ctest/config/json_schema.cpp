#include "config/json_schema.hpp"

#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "config/support.hpp"

namespace stratagem {
namespace {

using nlohmann::json;

json const& schema() {
  static auto const all = json::parse(json_schema(test::names()));
  return all["$defs"]["run"];
}

/// Of a section where it has this name.
json branch_of(std::string const& name, std::string const& section = "strategy") {
  auto const& all = schema();
  for (auto const& branch : all["properties"][section]["allOf"])
    if (branch["if"]["properties"]["name"]["const"] == name) return branch["then"];
  return {};
}

/// The names between which a section chooses.
std::vector<std::string> names_in(std::string const& section) {
  std::vector<std::string> names;
  for (auto const& choice : section_choices())
    if (choice.section == section) names.push_back(choice.name);
  return names;
}

TEST(JsonSchema, HasEveryKeyAndNoOther) {
  auto const& all = schema();
  std::size_t keys = 0;
  std::map<std::string, std::size_t> keys_of_names;
  for (auto const& key : describe_keys(test::names())) {
    auto const section = section_of(key.path), name = name_in_section(key.path);
    for (auto const& each : names_in(section)) {
      bool const has = branch_of(each, section)["properties"].contains(name);
      EXPECT_EQ(has, key.belongs_to({{section, each}})) << key.path << " of " << each;
      if (has) ++keys_of_names[each];
    }
    if (!names_in(section).empty()) continue;
    auto const& properties =
        section.empty() ? all["properties"] : all["properties"][section]["properties"];
    EXPECT_EQ(properties[name]["description"], key.meaning) << key.path;
    ++keys;
  }
  std::size_t there = all["properties"].size();  // `schema`; sections have their own
  for (auto const& [name, section] : all["properties"].items()) {
    if (name == "schema") continue;
    for (auto const& each : names_in(name))
      EXPECT_EQ(branch_of(each, name)["properties"].size(), keys_of_names[each]) << each;
    if (!names_in(name).empty()) {
      --there;
      continue;
    }
    there += section["properties"].size() - 1;
    EXPECT_EQ(section["additionalProperties"], false) << name;
  }
  EXPECT_EQ(there, keys);
  EXPECT_EQ(all["additionalProperties"], false);
  EXPECT_EQ(all["required"], (json{"data", "model", "strategy"}));
}

TEST(JsonSchema, OneOfTwoKeysIsRequired) {
  auto const properties = schema()["properties"];
  EXPECT_EQ(properties["data"]["anyOf"],
            json::parse(R"([{"required": ["dataset"]}, {"required": ["path"]}])"));
  EXPECT_EQ(properties["model"]["anyOf"],
            json::parse(R"([{"required": ["name"]}, {"required": ["file"]}])"));
}

TEST(JsonSchema, AStudyVariesEveryKeyOfEveryStrategy) {
  auto const definitions = json::parse(json_schema(test::names()))["$defs"];
  auto const matrix =
      definitions["study"]["properties"]["parts"]["additionalProperties"]["properties"]["matrix"];
  for (auto const& key : describe_keys(test::names()))
    EXPECT_EQ(matrix["properties"].contains(key.path), key.path != "schema") << key.path;
  EXPECT_EQ(definitions["settings"]["properties"]["strategy"].count("required"), 0U);
}

TEST(JsonSchema, TellsTypesRangesAndDefaults) {
  auto const properties = schema()["properties"];
  auto const value_of = [&](std::string const& section, std::string const& key) {
    return properties[section]["properties"][key];
  };
  auto const sgd = branch_of("sgd", "optimizer");
  EXPECT_EQ(sgd["properties"]["momentum"]["anyOf"][0],
            json::parse(R"({"type": "number", "minimum": 0, "exclusiveMaximum": 1})"));
  EXPECT_EQ(sgd["properties"]["lr"]["default"], 0.01);
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
