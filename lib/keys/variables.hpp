#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace stratagem {

/// The value of an environment variable; empty if it is not set.
using Environment = std::function<std::optional<std::string>(std::string const& name)>;

/// The same for the environment of this process.
std::optional<std::string> process_variable(std::string const& name);

/// A text after replacement of its variables.
struct Expansion {
  std::string text;
  bool changed = false;
  std::vector<std::string> complaints;  ///< one for each variable that is undefined or malformed
};

/// Replaces every ${NAME} once; the value of a variable is not searched again. $${ stands for ${
/// itself; a $ before anything else is a $.
Expansion expand_variables(std::string const& text, Environment const& environment);

/// The text that expands to `text`.
std::string escape_variables(std::string const& text);

}  // namespace stratagem
