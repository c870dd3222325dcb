#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/problems.hpp"
#include "config/yaml_node.hpp"
#include "keys/value.hpp"

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
/// to scalars or to lists of them. Everything else (other lists, deeper maps, aliases, anchors,
/// tags, a key given twice, a file above 1 MiB) becomes a problem. Nothing is returned where the
/// text is no YAML.
std::optional<Document> read_document(std::string const& text, std::string const& file,
                                      Problems& problems);

/// The same for a part of a file that holds sections.
Document read_sections(YamlNode const& node, Problems& problems);

/// `base` with what `more` says; where both say something, `more` counts.
Document merged(Document base, Document const& more);

}  // namespace stratagem
