#include "config/study_file.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/text.hpp"
#include "keys/text_form.hpp"

namespace stratagem {
namespace {

using Kind = YamlNode::Kind;

/// Letters, digits and . _ - in any order that makes a portable file name.
bool is_file_name(std::string const& name) {
  static constexpr std::size_t longest = 60;
  bool const plain = std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
  return plain && !name.empty() && name.size() <= longest && name.front() != '.' &&
         name.front() != '-';
}

class Reader {
 public:
  explicit Reader(Problems& problems) : problems_(problems) {}

  StudyFile study(YamlNode const& root) {
    StudyFile study{.name = {}, .begin = root.place, .base = {}, .variants = {}, .parts = {}};
    bool versioned = false, has_parts = false;
    each_member(root, "", {"schema", "name", "base", "variants", "parts"}, [&](auto const& member) {
      auto const& [key, value] = member;
      if (member.name() == "schema") versioned = is_schema(value);
      if (member.name() == "name") study.name = name_in(value, "name");
      if (member.name() == "base") study.base = sections(value, "base");
      if (member.name() == "variants")
        each_named(value, "variants", [&](auto const& name, auto const& settings) {
          study.variants.push_back({name.text, name.place, sections(settings, name.path)});
        });
      if (member.name() == "parts") has_parts = !value.members.empty();
      if (member.name() == "parts")
        each_named(value, "parts", [&](auto const& name, auto const& body) {
          study.parts.push_back(part(name, body));
        });
    });
    if (!versioned && !problems_.mention("schema"))
      problems_.add(root.place, "schema", "missing; must be 1");
    if (study.name.empty() && !problems_.mention("name"))
      problems_.add(root.place, "name", "missing; it names the study's folder");
    if (!has_parts && !problems_.mention("parts"))
      problems_.add(root.place, "parts", "missing; a study has at least one part");
    return study;
  }

 private:
  /// A name that may become part of a file's, and where it stands.
  struct Name {
    std::string text;
    Place place;
    std::string path;
  };

  bool expect(YamlNode const& node, Kind kind, std::string const& path, char const* expected) {
    check_plain(node, path, problems_);
    if (node.kind == kind) return true;
    problems_.add(node.place, path, std::string(expected) + " is expected");
    return false;
  }

  /// `known` are all keys that the map may have.
  void each_member(YamlNode const& map, std::string const& path,
                   std::vector<std::string> const& known,
                   std::function<void(YamlMember const&)> const& visit) {
    if (!expect(map, Kind::map, path, "a map")) return;
    check_keys(map, path, problems_);
    for (auto const& member : map.members) {
      if (std::ranges::count(known, member.name()) > 0) {
        visit(member);
      } else {
        problems_.add(member.key.place, (path.empty() ? "" : path + ".") + shown_key(member.name()),
                      "unknown key" + did_you_mean(member.name(), known));
      }
    }
  }

  void each_named(YamlNode const& map, std::string const& path,
                  std::function<void(Name const&, YamlNode const&)> const& visit) {
    if (!expect(map, Kind::map, path, "a map of names")) return;
    check_keys(map, path, problems_);
    for (auto const& [key, value] : map.members) {
      Name const name{key.scalar.text, key.place, path + "." + shown_key(key.scalar.text)};
      if (is_file_name(name.text)) {
        visit(name, value);
      } else {
        problems_.add(name.place, name.path, "is not a name made of letters, digits, _, - and .");
      }
    }
  }

  bool is_schema(YamlNode const& node) {
    if (!expect_scalar(node, "schema", problems_)) return true;
    if (node.scalar.text != "1")
      problems_.add(node.place, "schema",
                    "is " + abridged(node.scalar.text) + ", must be 1: another version's study");
    return true;
  }

  std::string name_in(YamlNode const& node, std::string const& path) {
    if (!expect_scalar(node, path, problems_)) return {};
    if (!is_file_name(node.scalar.text))
      problems_.add(node.place, path,
                    "is " + abridged(node.scalar.text) +
                        ", must be a name made of letters, digits, _, - and .");
    return node.scalar.text;
  }

  Document sections(YamlNode const& node, std::string const& path) {
    if (!expect(node, Kind::map, path, "a map of sections")) return {};
    return read_sections(node, problems_);
  }

  StudyPart part(Name const& name, YamlNode const& body) {
    StudyPart part{.name = name.text, .place = name.place, .base = {}, .matrix = {}, .exclude = {}};
    each_member(body, name.path, {"base", "matrix", "exclude"}, [&](YamlMember const& member) {
      auto const path = name.path + "." + member.name();
      if (member.name() == "base") part.base = sections(member.value, path);
      if (member.name() == "matrix") part.matrix = axes(member.value, path, false);
      if (member.name() == "exclude") part.exclude = exclusions(member.value, path);
    });
    if (part.matrix.empty() && body.kind == Kind::map && !problems_.mention(name.path + ".matrix"))
      problems_.add(name.place, name.path + ".matrix", "missing; it says what varies");
    return part;
  }

  /// `or_one`: a single value also stands for a list of it.
  std::vector<Axis> axes(YamlNode const& map, std::string const& path, bool or_one) {
    std::vector<Axis> axes;
    if (!expect(map, Kind::map, path, "a map of axes")) return axes;
    check_keys(map, path, problems_);
    for (auto const& [key, value] : map.members) {
      Axis axis{key.scalar.text, key.place, {}};
      auto const axis_path = path + "." + key.scalar.text;
      if (or_one && value.kind == Kind::scalar) {
        add_value(axis, value, axis_path);
      } else if (expect(value, Kind::list, axis_path, "a list of values")) {
        if (value.items.empty()) problems_.add(value.place, axis_path, "is empty");
        for (auto const& item : value.items) add_value(axis, item, axis_path);
      }
      axes.push_back(std::move(axis));
    }
    return axes;
  }

  void add_value(Axis& axis, YamlNode const& node, std::string const& path) {
    if (!expect_scalar(node, path, problems_)) return;
    if (node.scalar.null) {
      problems_.add(node.place, path, "has no value");
    } else {
      axis.values.push_back({node.scalar, node.place});
    }
  }

  std::vector<Exclusion> exclusions(YamlNode const& list, std::string const& path) {
    std::vector<Exclusion> all;
    if (!expect(list, Kind::list, path, "a list")) return all;
    for (auto const& item : list.items) all.push_back({item.place, axes(item, path, true)});
    return all;
  }

  Problems& problems_;
};

/// Whether the text is YAML with one of these at its top.
bool has_member(std::string const& text, std::vector<std::string> const& names) {
  Problems ignored;
  auto const root = read_yaml(text, "", ignored);
  return root && std::ranges::any_of(root->members, [&](YamlMember const& member) {
           return std::ranges::count(names, member.name()) > 0;
         });
}

}  // namespace

std::optional<StudyFile> read_study_file(std::string const& text, std::string const& file,
                                         Problems& problems) {
  auto const root = read_yaml(text, file, problems);
  if (!root) return std::nullopt;
  return Reader(problems).study(*root);
}

bool is_study_text(std::string const& text) {
  return has_member(text, {"parts"});
}

bool is_configuration_text(std::string const& text) {
  return !is_study_text(text) && has_member(text, {"data", "model", "strategy"});
}

}  // namespace stratagem
