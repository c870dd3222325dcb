#include "config/document.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "keys/text_form.hpp"

namespace stratagem {
namespace {

/// The items of a list of single values; empty if it is none.
std::optional<Scalar> joined(YamlNode const& node) {
  bool const plain = node.kind == YamlNode::Kind::list && !node.tagged && !node.anchored &&
                     std::ranges::all_of(node.items, [](YamlNode const& item) {
                       return item.kind == YamlNode::Kind::scalar && !item.scalar.null &&
                              !item.tagged && !item.anchored;
                     });
  if (!plain || node.items.empty()) return std::nullopt;
  Scalar scalar{.list = true};
  for (auto const& item : node.items)
    scalar.text += (scalar.text.empty() ? "" : " ") + item.scalar.text;
  return scalar;
}

void read_entry(std::string const& section, YamlMember const& member, Document& document,
                Problems& problems) {
  Entry entry{section, shown_key(member.name()), {}, member.key.place, member.value.place};
  if (auto const list = joined(member.value); list && !section.empty()) {
    entry.value = *list;
  } else if (expect_scalar(member.value, entry.path(), problems)) {
    entry.value = member.value.scalar;
  } else {
    return;
  }
  document.entries.push_back(std::move(entry));
}

void read_section(YamlMember const& member, Document& document, Problems& problems) {
  auto const name = shown_key(member.name());
  check_plain(member.value, name, problems);
  check_keys(member.value, name, problems);
  document.sections.push_back({name, member.key.place});
  for (auto const& inner : member.value.members) read_entry(name, inner, document, problems);
}

}  // namespace

Document read_sections(YamlNode const& node, Problems& problems) {
  Document document;
  if (node.kind != YamlNode::Kind::map) {
    if (!node.is_null()) problems.add(node.place, "", "the file must be a map of sections");
    return document;
  }
  check_plain(node, "", problems);
  check_keys(node, "", problems);
  for (auto const& member : node.members) {
    if (member.value.kind == YamlNode::Kind::map) {
      read_section(member, document, problems);
    } else {
      read_entry("", member, document, problems);
    }
  }
  return document;
}

std::optional<Document> read_document(std::string const& text, std::string const& file,
                                      Problems& problems) {
  auto const root = read_yaml(text, file, problems);
  if (!root) return std::nullopt;
  return read_sections(*root, problems);
}

Document merged(Document base, Document const& more) {
  for (auto const& entry : more.entries) {
    std::erase_if(base.entries, [&](Entry const& old) { return old.path() == entry.path(); });
    base.entries.push_back(entry);
  }
  base.sections.insert(base.sections.end(), more.sections.begin(), more.sections.end());
  return base;
}

}  // namespace stratagem
