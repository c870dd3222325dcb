#include "config/json_schema.hpp"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

namespace stratagem {
namespace {

using Json = nlohmann::ordered_json;
using Kind = Shape::Kind;

/// A bound as an integer where it is one: 1, not 1.0.
Json bound(double value) {
  if (std::abs(value) < 1e15 && std::floor(value) == value) return static_cast<std::int64_t>(value);
  return value;
}

void add_range(Range const& range, Json& type) {
  if (range.low() > -no_limit)
    type[range.low_included() ? "minimum" : "exclusiveMinimum"] = bound(range.low());
  if (range.high() < no_limit)
    type[range.high_included() ? "maximum" : "exclusiveMaximum"] = bound(range.high());
}

Json choice(std::vector<std::string> const& names) {
  auto allowed = Json::array();
  for (auto const& name : names) {
    if (name == "1") allowed.push_back(1);  // without quotes YAML makes it a number
    allowed.push_back(name);
  }
  return {{"enum", allowed}};
}

/// Which values can be written down, apart from variables.
Json type_of(Shape const& shape) {
  Json type;
  switch (shape.kind) {
    case Kind::text:
      type["type"] = Json::array({"string", "number", "boolean"});
      if (!shape.pattern.empty()) type["pattern"] = "^(" + shape.pattern + ")$";
      break;
    case Kind::flag:
      type["type"] = "boolean";
      break;
    case Kind::integer:
    case Kind::number:
      type["type"] = shape.kind == Kind::integer ? "integer" : "number";
      add_range(shape.range, type);
      break;
    case Kind::numbers: {
      Json item{{"type", "number"}};
      add_range(shape.range, item);
      type["type"] = "array";
      type["items"] = item;
      break;
    }
    case Kind::choice:
      type = choice(shape.names);
      break;
  }
  return type;
}

Json default_of(Key const& key) {
  auto const yaml = key.value.get();
  auto const plain = Json::parse(yaml, nullptr, false);
  return plain.is_discarded() ? Json(yaml) : plain;
}

Json describe(Key const& key) {
  auto const& shape = key.value.shape;
  bool const any_text = shape.kind == Kind::text && shape.pattern.empty();
  auto property =
      any_text ? type_of(shape)
               : Json{{"anyOf", Json::array({type_of(shape), {{"$ref", "#/$defs/variable"}}})}};
  property["description"] = key.meaning;
  if (!key.required && !key.value.get().empty()) property["default"] = default_of(key);
  return property;
}

Json closed_map() {
  return {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
}

/// One of two keys is required: itself, or the one that may be given instead.
void require(Key const& key, Json& map) {
  auto const name = name_in_section(key.path);
  if (key.instead.empty()) {
    map["required"].push_back(name);
    return;
  }
  Json const itself{{"required", {name}}}, other{{"required", {name_in_section(key.instead)}}};
  map["anyOf"] = Json::array({itself, other});
}

void add_property(Key const& key, Json& map) {
  map["properties"][name_in_section(key.path)] = describe(key);
  if (key.required) require(key, map);
}

bool has_choices(std::string const& section) {
  return std::ranges::count(section_choices(), section, &SectionChoice::section) > 0;
}

/// A section whose name decides which keys it has.
Json section_of_choices(std::string const& section, KnownNames const& names) {
  Json schema{{"type", "object"}, {"allOf", Json::array()}};
  for (auto const& choice : section_choices()) {
    if (choice.section != section) continue;
    RunConfig config;
    choice.choose(config);
    auto keys = closed_map();
    Json is_it{{"properties", {{"name", {{"const", choice.name}}}}}};
    for (auto const& key : keys_of(config, names)) {
      if (section_of(key.path) != section) continue;
      add_property(key, keys);
      if (name_in_section(key.path) != "name") continue;
      auto& name = schema["properties"]["name"];
      bool const is_default = name.is_null() && !key.required;
      if (name.is_null()) name = describe(key);
      if (key.required) schema["required"] = {"name"};
      if (!is_default) is_it["required"] = {"name"};
      if (!key.required) keys["type"] = Json::array({"object", "null"});
    }
    schema["allOf"].push_back({{"if", is_it}, {"then", keys}});
  }
  return schema;
}

/// Sections that only some strategies have; which of them is not told here.
void add_sections_of_strategies(KnownNames const& names, Json& properties) {
  for (auto const& choice : section_choices()) {
    RunConfig config;
    choice.choose(config);
    for (auto const& key : keys_of(config, names)) {
      auto const section = section_of(key.path);
      if (section.empty() || has_choices(section)) continue;
      if (!properties.contains(section)) properties[section] = closed_map();
      if (!properties[section]["properties"].contains(name_in_section(key.path)))
        add_property(key, properties[section]);
    }
  }
}

Json run_schema(KnownNames const& names) {
  auto schema = closed_map();
  schema["title"] = "Configuration of a stratagem run";
  RunConfig config;
  for (auto const& key : keys_of(config, names)) {
    auto const section = section_of(key.path);
    if (section.empty()) {
      add_property(key, schema);
      continue;
    }
    auto& properties = schema["properties"];
    if (has_choices(section)) {
      if (!properties.contains(section)) properties[section] = section_of_choices(section, names);
    } else {
      if (!properties.contains(section)) properties[section] = closed_map();
      add_property(key, properties[section]);
    }
    if (key.required) schema["required"].push_back(section);
  }
  add_sections_of_strategies(names, schema["properties"]);
  for (auto& [name, section] : schema["properties"].items())
    if (section.contains("properties") && !section.contains("required") &&
        !section.contains("anyOf"))
      section["type"] = Json::array({"object", "null"});  // an empty section
  return schema;
}

/// Adds a key, or what else the key of another strategy with the same name may be.
void add_alternative(Json const& property, Json& known) {
  if (known.is_null()) {
    known = property;
    known.erase("default");
  } else if (property.contains("anyOf") && known.contains("anyOf")) {
    for (auto const& type : property["anyOf"])
      if (std::ranges::count(known["anyOf"], type) == 0) known["anyOf"].push_back(type);
  }
}

/// Parts of a configuration, as a study puts them together: keys of every strategy, none required.
Json settings(KnownNames const& names) {
  auto sections = closed_map();
  for (auto const& choice : section_choices()) {
    RunConfig config;
    choice.choose(config);
    for (auto const& key : keys_of(config, names)) {
      if (section_of(key.path).empty()) continue;
      auto& section = sections["properties"][section_of(key.path)];
      if (section.is_null()) {
        section = closed_map();
        section["type"] = Json::array({"object", "null"});
      }
      add_alternative(describe(key), section["properties"][name_in_section(key.path)]);
    }
  }
  return sections;
}

Json list_of(Json const& items) {
  return {{"type", "array"}, {"items", items}, {"minItems", 1}};
}

/// What a study varies: `of` makes the type of an axis from that of a value.
template <class Of>
Json axes(Json const& sections, Of const& of) {
  auto map = closed_map();
  map["properties"]["variant"] = of(Json{{"type", "string"}});
  map["properties"]["workers"] = of(Json{{"type", "integer"}, {"minimum", 1}});
  for (auto const& [section, keys] : sections["properties"].items())
    for (auto const& [name, property] : keys["properties"].items())
      map["properties"][section + "." + name] = of(property);
  return map;
}

Json map_of(Json const& each) {
  return {{"type", "object"}, {"additionalProperties", each}};
}

Json study_schema(KnownNames const& names) {
  auto const one_or_list = [](Json const& value) {
    return Json{{"anyOf", Json::array({value, list_of(value)})}};
  };
  auto const sections = settings(names);
  Json const settings_here{{"$ref", "#/$defs/settings"}};
  auto part = closed_map();
  part["required"] = {"matrix"};
  part["properties"] = {{"base", settings_here},
                        {"matrix", axes(sections, list_of)},
                        {"exclude", list_of(axes(sections, one_or_list))}};
  auto study = closed_map();
  study["title"] = "A stratagem study";
  study["required"] = {"schema", "name", "parts"};
  study["properties"] = {{"schema", choice({"1"})},
                         {"name", {{"type", "string"}}},
                         {"base", settings_here},
                         {"variants", map_of(settings_here)},
                         {"parts", map_of(part)}};
  return study;
}

}  // namespace

std::string json_schema(KnownNames const& names) {
  Json const schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                    {"title", "Configuration of a stratagem run, or a study"},
                    {"if", {{"required", {"parts"}}}},
                    {"then", {{"$ref", "#/$defs/study"}}},
                    {"else", {{"$ref", "#/$defs/run"}}},
                    {"$defs",
                     {{"run", run_schema(names)},
                      {"study", study_schema(names)},
                      {"settings", settings(names)},
                      {"variable",
                       {{"type", "string"},
                        {"pattern", "\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}"},
                        {"description", "a variable of the environment"}}}}}};
  return schema.dump(2) + "\n";
}

}  // namespace stratagem
