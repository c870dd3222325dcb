#include "config/parse.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/portable_text.hpp"
#include "base/text.hpp"
#include "config/given.hpp"
#include "config/rules.hpp"
#include "config/unknown_key.hpp"
#include "keys/home.hpp"
#include "keys/text_form.hpp"

namespace stratagem {
namespace {

using KeyTable = std::vector<KeyDescription>;

/// The value of an override is taken as it stands, without YAML's quotes.
std::vector<Entry> read_overrides(std::vector<std::string> const& overrides, Problems& problems) {
  std::vector<Entry> entries;
  int number = 0;
  for (auto const& text : overrides) {
    auto const place = place_of_override(++number, text);
    auto const equals = text.find('=');
    if (equals == std::string::npos) {
      problems.add(place, "", "is not section.key=value");
      continue;
    }
    auto const path = text.substr(0, equals);
    auto const dot = path.find('.');
    auto const section = dot == std::string::npos ? "" : shown_key(path.substr(0, dot));
    auto const name = shown_key(path.substr(dot + 1));  // npos + 1 is the beginning
    entries.push_back({section, name, {text.substr(equals + 1)}, place, place});
  }
  return entries;
}

/// The last value of `<section>.name`; empty where there is none.
std::string name_in(std::string const& section, std::vector<Entry> const& entries,
                    Environment const& environment) {
  auto const last = std::find_if(entries.rbegin(), entries.rend(), [&](Entry const& entry) {
    return entry.path() == section + ".name";
  });
  return last == entries.rend() ? "" : expand_variables(last->value.text, environment).text;
}

/// What is chosen where nothing is: there is a default optimizer.
std::string default_name(std::string const& section) {
  return section == "optimizer" ? std::string(name_of(RunConfig().optimizer)) : "";
}

std::string first_of(std::initializer_list<std::string> names) {
  auto const found = std::ranges::find_if(names, [](auto const& name) { return !name.empty(); });
  return found == names.end() ? "" : *found;
}

/// Some names decide which keys their sections have, so they are looked for before keys are read.
/// One that an override puts in the place of the file's takes away the keys that only the old one
/// has.
Chosen choose(RunConfig& config, std::vector<Entry>& in_file, std::vector<Entry> const& overrides,
              KeyTable const& table, Environment const& environment) {
  Chosen chosen;
  for (auto const& [section, name, put_into] : section_choices()) {
    auto const before = first_of({name_in(section, in_file, environment), default_name(section)});
    if (name != first_of({name_in(section, overrides, environment), before})) continue;
    std::erase_if(in_file, [&, &section = section, &name = name](Entry const& entry) {
      auto const key = std::ranges::find(table, entry.path(), &KeyDescription::path);
      return name != before && key != table.end() && key->belongs_to({{section, before}}) &&
             !key->belongs_to({{section, name}});
    });
    put_into(config);
    chosen[section] = name;
  }
  return chosen;
}

/// Finds the entries that count; the others are problems.
Given sort_out(Document const& document, std::vector<Entry> const& overrides, Chosen const& chosen,
               KeyTable const& table, Problems& problems) {
  Given given;
  auto const is_key = [&](std::string const& path) {
    auto const key = std::ranges::find(table, path, &KeyDescription::path);
    return key != table.end() && key->belongs_to(chosen);
  };
  auto const is_section = [&](std::string const& name) {
    return std::ranges::count(table, name, [](auto const& key) { return section_of(key.path); }) >
           0;
  };
  for (auto const& [name, place] : document.sections) {
    given.sections.emplace(name, place);
    if (is_key(name)) {
      problems.add(place, name, "a map; one value is expected");
    } else if (!is_section(name)) {
      problems.add(place, name, explain_unknown_section(name, table));
    }
  }
  auto const take = [&](Entry const& entry) {
    if (is_key(entry.path())) {
      given.entries[entry.path()] = entry;
    } else {
      problems.add(
          entry.key_place, entry.path(),
          problems.fill_a_report() ? "unknown key" : explain_unknown_key(entry, table, chosen));
    }
  };
  auto const is_listed = [&](std::string const& section) {
    return std::ranges::count(document.sections, section, &NamedPlace::name) > 0;
  };
  for (auto const& entry : document.entries) {
    bool const is_empty_section = entry.value.null && is_section(entry.path());
    bool const was_refused = is_listed(entry.section) && !is_section(entry.section);
    if (!is_empty_section && !was_refused) take(entry);
  }
  for (auto const& entry : overrides) take(entry);
  return given;
}

void read_value(Key const& key, Entry const& entry, Environment const& environment,
                Problems& problems) {
  auto const refuse = [&](std::string message) {
    problems.add(entry.value_place, key.path, std::move(message));
  };
  if (entry.value.list && key.value.shape.kind != Shape::Kind::numbers)
    return refuse("a list; one value is expected");
  if (entry.value.null) return refuse("has no value (\"\" is an empty text)");
  auto const expansion = expand_variables(entry.value.text, environment);
  for (auto const& complaint : expansion.complaints) refuse(complaint);
  if (!expansion.complaints.empty()) return;
  auto text = expansion.text;
  if (key.value.type == path_type) {
    auto home = expand_home(text, environment);
    if (home.complaint) return refuse(*home.complaint);
    text = std::move(home.path);
  }
  if (!is_portable_text(text)) return refuse("is not UTF-8 text without NUL");
  // A value made of variables has the type that its text has.
  Scalar const scalar{text, entry.value.quoted && !expansion.changed};
  if (auto const complaint = key.value.set(scalar)) refuse(*complaint);
}

void read_values(RunConfig& config, Given const& given, KnownNames const& names,
                 Environment const& environment, Problems& problems) {
  for (auto const& key : keys_of(config, names)) {
    if (auto const entry = given.entries.find(key.path); entry != given.entries.end()) {
      read_value(key, entry->second, environment, problems);
    } else if (key.required && !given.has(key.instead) && !problems.mention(key.path)) {
      auto const other = key.instead.empty() ? "" : str(", or give ", key.instead);
      problems.add(given.place_of(key.path), key.path,
                   str("missing; must be one of ", key.value.type, other));
    }
  }
}

/// Keys of every strategy and optimizer, each once.
std::vector<Key> all_keys(std::vector<RunConfig>& configs, KnownNames const& names) {
  std::vector<Key> keys;
  for (auto const& choice : section_choices()) choice.choose(configs.emplace_back());
  for (auto& config : configs)
    for (auto& key : keys_of(config, names))
      if (std::ranges::count(keys, key.path, &Key::path) == 0) keys.push_back(std::move(key));
  return keys;
}

}  // namespace

void check_alone(std::vector<Document> const& parts, std::vector<std::string> const& overrides,
                 KnownNames const& names, Environment const& environment, Problems& problems) {
  auto const table = describe_keys(names);
  std::vector<RunConfig> configs;
  configs.reserve(section_choices().size());
  auto const keys = all_keys(configs, names);
  auto const check = [&](Document const& part, std::vector<Entry> const& overriding) {
    for (auto const& [path, entry] : sort_out(part, overriding, {}, table, problems).entries)
      read_value(*std::ranges::find(keys, path, &Key::path), entry, environment, problems);
  };
  for (auto const& part : parts) check(part, {});
  for (auto const& entry : read_overrides(overrides, problems)) check({}, {entry});
}

RunConfig read_config(Document document, Place const& begin,
                      std::vector<std::string> const& overrides, KnownNames const& names,
                      Environment const& environment, Problems& problems) {
  auto const override_entries = read_overrides(overrides, problems);
  RunConfig config;
  auto const table = describe_keys(names);
  auto const chosen = choose(config, document.entries, override_entries, table, environment);
  auto given = sort_out(document, override_entries, chosen, table, problems);
  given.file_begin = begin;

  read_values(config, given, names, environment, problems);
  derive_defaults(config, given, environment);
  check_rules(config, given, problems);
  return config;
}

RunConfig parse_config(std::string const& text, std::string const& file,
                       std::vector<std::string> const& overrides, KnownNames const& names,
                       Environment const& environment) {
  Problems problems;
  auto document = read_document(text, file, problems);
  if (!document) problems.raise();
  auto config = read_config(std::move(*document), place_in_file(file, 1, 1), overrides, names,
                            environment, problems);
  if (!problems.empty()) problems.raise();
  return config;
}

}  // namespace stratagem
