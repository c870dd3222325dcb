#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stratagem {

/// Our name for a word of other programs.
struct Synonym {
  std::string_view word;     ///< in lower case, without - and _
  std::string_view name;     ///< used if it is among the possible names
  std::string_view further;  ///< additional advice; may be empty
};

/// " (did you mean \"x\"?)" or "": a synonym of `word`, else the nearest of `names` in spelling,
/// ignoring case and hyphens, else the only one that begins with `word`.
std::string suggestion(std::string_view word, std::span<std::string const> names,
                       std::span<Synonym const> synonyms);

/// The same, with synonyms for values of a configuration: gpu for cuda, zero3 for fsdp.
std::string suggest_value(std::string_view word, std::span<std::string const> names);
/// For a key: a synonym that is a path in any section, such as optimizer.lr for learning_rate, else
/// one of the names in its own section.
std::string suggest_key(std::string_view word, std::span<std::string const> in_section,
                        std::span<std::string const> paths);

}  // namespace stratagem
