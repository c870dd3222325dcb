#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "config/parse.hpp"

namespace stratagem::test {

inline KnownNames const& names() {
  static KnownNames const known{{"mnist", "cifar10", "synthetic-digits"},
                                {"lenet", "vgg16", "resnet50"}};
  return known;
}

inline Environment environment(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](std::string const& name) {
    auto const found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

/// The least that a configuration must say.
inline std::string const minimal =
    "data: {dataset: mnist}\n"
    "model: {name: lenet}\n"
    "strategy: {name: ddp}\n";

inline RunConfig parse(std::string const& text, std::vector<std::string> const& overrides = {},
                       std::map<std::string, std::string> variables = {}) {
  return parse_config(text, "c.yaml", overrides, names(), environment(std::move(variables)));
}

/// The lines of the error; none where the configuration is accepted.
inline std::vector<std::string> problems(std::string const& text,
                                         std::vector<std::string> const& overrides = {},
                                         std::map<std::string, std::string> variables = {}) {
  try {
    parse(text, overrides, std::move(variables));
    return {};
  } catch (Error const& error) {
    if (error.code() != ExitCode::usage) return {"not an Error(usage)"};
    return split(error.what(), '\n');
  }
}

}  // namespace stratagem::test
