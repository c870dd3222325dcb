#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace stratagem {

/// The value of an environment variable, or nothing where it is not set.
using Environment = std::function<std::optional<std::string>(std::string const& name)>;

/// That of this process.
std::optional<std::string> process_variable(std::string const& name);

/// A text with its variables replaced.
struct Expansion {
  std::string text;
  bool changed = false;
  std::vector<std::string> complaints;  ///< one for each variable that is undefined or misspelt
};

/// Replaces every ${NAME}, once: what a variable holds is taken as it is. $${ stands for ${ itself;
/// a $ before anything else is a $.
Expansion expand_variables(std::string const& text, Environment const& environment);

/// The text that expands to `text`.
std::string escape_variables(std::string const& text);

}  // namespace stratagem
