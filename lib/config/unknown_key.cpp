#include "config/unknown_key.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "keys/suggestion.hpp"
#include "keys/text_form.hpp"

namespace stratagem {
namespace {

using Names = std::vector<std::string>;

Names names_in(std::string const& section, std::vector<KeyDescription> const& keys,
               Chosen const& chosen) {
  Names names;
  for (auto const& key : keys)
    if (section_of(key.path) == section && key.belongs_to(chosen))
      names.push_back(name_in_section(key.path));
  return names;
}

Names section_names(std::vector<KeyDescription> const& keys) {
  Names names;
  for (auto const& key : keys)
    if (auto const section = section_of(key.path);
        !section.empty() && (names.empty() || names.back() != section))
      names.push_back(section);
  return names;
}

/// Keys of that name in any section.
Names namesakes(std::string const& name, std::vector<KeyDescription> const& keys,
                Chosen const& chosen) {
  Names paths;
  for (auto const& key : keys)
    if (name_in_section(key.path) == name && key.belongs_to(chosen)) paths.push_back(key.path);
  return paths;
}

Names paths_of(std::vector<KeyDescription> const& keys, Chosen const& chosen) {
  Names paths;
  for (auto const& key : keys)
    if (key.belongs_to(chosen)) paths.push_back(key.path);
  return paths;
}

}  // namespace

std::string explain_unknown_section(std::string const& name,
                                    std::vector<KeyDescription> const& keys) {
  return "unknown section" + suggestion(name, section_names(keys), {});
}

std::string explain_unknown_key(Entry const& entry, std::vector<KeyDescription> const& keys,
                                Chosen const& chosen) {
  auto const& [section, name, value, key_place, value_place] = entry;
  auto const sections = section_names(keys);
  if (auto const key = std::ranges::find(keys, entry.path(), &KeyDescription::path);
      key != keys.end())
    return str("key of ", key->chooser, ' ', join(key->owners, " and "), ", not of ",
               chosen.at(key->chooser));
  if (section.empty() && std::ranges::count(sections, name) > 0)
    return "a section, not a key; its keys are " + join(names_in(name, keys, chosen), ", ");
  if (!section.empty() && std::ranges::count(sections, section) == 0)
    return explain_unknown_section(section, keys);
  for (auto const& key : keys)
    if (name == yaml_quoted(key.path))
      return "a path, not a key; write " + section_of(key.path) + ": {" +
             name_in_section(key.path) + ": ...}";
  if (auto const others = namesakes(name, keys, chosen); others.size() == 1)
    return "unknown key (did you mean \"" + others.front() + "\"?)";
  return "unknown key" + suggest_key(name, names_in(section, keys, chosen), paths_of(keys, chosen));
}

}  // namespace stratagem
