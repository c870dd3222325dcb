#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/problems.hpp"
#include "config/value.hpp"

namespace stratagem {

/// A key and its value.
struct Entry {
  std::string section;  ///< empty outside of sections
  std::string name;
  Scalar value;
  Place key_place;
  Place value_place;

  std::string path() const { return section.empty() ? name : section + '.' + name; }
};

/// A key of which only name and place are known.
struct NamedPlace {
  std::string name;
  Place place;
};

/// A configuration file as it was written. Keys that are no words are in quotes, so that no dot of
/// theirs looks like a path's.
struct Document {
  std::vector<NamedPlace> sections;
  std::vector<Entry> entries;
};

/// Reads the part of YAML that a configuration needs: one document, a map of sections that map keys
/// to scalars. Everything else (lists, deeper maps, aliases, anchors, tags, a key given twice, a
/// file above 1 MiB) becomes a problem. Nothing is returned where the text is no YAML: what was
/// read of it may mean something else. Safe on any bytes.
std::optional<Document> read_document(std::string const& text, std::string const& file,
                                      Problems& problems);

}  // namespace stratagem
