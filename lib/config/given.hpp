#pragma once

#include <map>
#include <string>

#include "config/document.hpp"

namespace stratagem {

/// What a user gave: of each key the entry that counts.
struct Given {
  std::map<std::string, Entry> entries;   ///< by path
  std::map<std::string, Place> sections;  ///< by name
  Place file_begin;

  bool has(std::string const& path) const { return entries.contains(path); }

  /// Of the value, or else of the section where it would stand, or else of the file.
  Place place_of(std::string const& path) const {
    if (auto const entry = entries.find(path); entry != entries.end())
      return entry->second.value_place;
    auto const section = sections.find(path.substr(0, path.find('.')));
    return section != sections.end() ? section->second : file_begin;
  }
};

}  // namespace stratagem
