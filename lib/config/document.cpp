#include "config/document.hpp"

#include <algorithm>
#include <utility>

#include "keys/text_form.hpp"

namespace stratagem {
namespace {

void read_entry(std::string const& section, YamlMember const& member, Document& document,
                Problems& problems) {
  Entry entry{section, shown_key(member.name()), {}, member.key.place, member.value.place};
  if (!expect_scalar(member.value, entry.path(), problems)) return;
  entry.value = member.value.scalar;
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
