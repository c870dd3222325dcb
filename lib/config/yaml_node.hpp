#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/problems.hpp"
#include "keys/value.hpp"

namespace stratagem {

struct YamlMember;

/// A piece of a YAML file as it was written, with its place.
struct YamlNode {
  enum class Kind { scalar, list, map, alias };

  Kind kind = Kind::scalar;
  Place place;
  Scalar scalar;                    ///< of a scalar
  std::vector<YamlNode> items;      ///< of a list
  std::vector<YamlMember> members;  ///< of a map, in order; keys may repeat
  bool tagged = false;
  bool anchored = false;

  bool is_null() const { return kind == Kind::scalar && scalar.null; }
};

/// A key of a map, and its value.
struct YamlMember {
  YamlNode key;  ///< a scalar
  YamlNode value;

  std::string const& name() const { return key.scalar.text; }
};

/// The only document of a file; a null scalar where there is none. Nothing is returned where the
/// text is no YAML, no UTF-8, above 1 MiB or of more than 20,000 keys and values: what was read of
/// it may mean something else. Safe on any bytes.
std::optional<YamlNode> read_yaml(std::string const& text, std::string const& file,
                                  Problems& problems);

// What a configuration does without becomes a problem of the key `path`.

/// Tags and anchors.
void check_plain(YamlNode const& node, std::string const& path, Problems& problems);
/// False for anything but a scalar.
bool expect_scalar(YamlNode const& node, std::string const& path, Problems& problems);
/// Keys of a map that are given twice. `path` is the map's.
void check_keys(YamlNode const& map, std::string const& path, Problems& problems);

}  // namespace stratagem
