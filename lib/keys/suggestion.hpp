#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stratagem {

/// What a word of other programs is called here.
struct Synonym {
  std::string_view word;     ///< in lower case, without - and _
  std::string_view name;     ///< a name, where it is among those that can be taken
  std::string_view further;  ///< what has to be said beside it; empty: nothing
};

/// " (did you mean \"x\"?)" or "": a synonym of `word`, else the nearest of `names` in spelling,
/// whatever their case and hyphens, else the only one that begins so.
std::string suggestion(std::string_view word, std::span<std::string const> names,
                       std::span<Synonym const> synonyms);

/// The same with the synonyms of values of a configuration: gpu for cuda, zero3 for fsdp.
std::string suggest_value(std::string_view word, std::span<std::string const> names);
/// Of a key: a synonym that is a path of all sections, such as optimizer.lr for learning_rate, else
/// one of the names of its own section.
std::string suggest_key(std::string_view word, std::span<std::string const> in_section,
                        std::span<std::string const> paths);

}  // namespace stratagem
