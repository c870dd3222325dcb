#include "app/commands/starter_config.hpp"

#include <algorithm>
#include <iterator>

#include "base/contract.hpp"
#include "base/text.hpp"
#include "keys/text_form.hpp"
#include "keys/variables.hpp"

namespace stratagem::app {
namespace {

/// A key of the file.
struct Entry {
  std::string path;
  bool said = false;  ///< else a comment
  std::string value;  ///< empty: the default
};

std::vector<Entry> strategy_entries(std::string const& name,
                                    std::vector<KeyDescription> const& keys) {
  std::vector<Entry> list;
  for (auto const& key : keys)
    if (section_of(key.path) == "strategy" && key.belongs_to({{"strategy", name}}) &&
        key.in_first_file != InFirstFile::no)
      list.push_back({key.path, key.in_first_file == InFirstFile::yes, {}});
  return list;
}

/// A name, or a path in its place.
Entry name_or_path(std::string const& name_key, std::string const& name,
                   std::string const& path_key, std::string const& path) {
  if (path.empty()) return {name_key, true, name};
  return {path_key, true, yaml_quoted(escape_variables(path))};
}

std::vector<Entry> entries(Starter const& starter, std::vector<KeyDescription> const& keys) {
  std::vector<Entry> list{
      {"run.name", true, starter.model + "-" + starter.strategy},
      {"run.epochs", true},
      {"run.ranks", starter.ranks > 0, std::to_string(starter.ranks)},
      {"run.threads"},
      {"run.seed"},
      {"run.device"},
      name_or_path("data.dataset", starter.dataset, "data.path", starter.data_path),
      {"data.root"},
      {"data.global_batch", true, std::to_string(starter.global_batch)},
      {"data.input_size", starter.input_size > 0,
       starter.input_size > 0 ? std::to_string(starter.input_size) : ""},
      {"data.augment"},
      name_or_path("model.name", starter.model, "model.file", starter.model_file),
      {"model.num_classes", starter.classes > 0,
       starter.classes > 0 ? std::to_string(starter.classes) : ""},
      {"model.recompute"},
      {"precision.compute"},
      {"optimizer.lr", true},
      {"optimizer.momentum", true},
      {"optimizer.weight_decay"},
      {"optimizer.lr_scaling"},
      {"optimizer.schedule"},
      {"strategy.name", true, starter.strategy}};
  std::ranges::move(strategy_entries(starter.strategy, keys), std::back_inserter(list));
  list.push_back({"checkpoint.every_minutes"});
  list.push_back({"trace.spans_every"});
  return list;
}

/// "  key: value        # meaning"; with its section's head where `head` says so. A section of
/// comments is one as a whole.
std::string lines_of(Entry const& entry, KeyDescription const& key, bool head, bool section_said) {
  static constexpr std::size_t column = 32, width = 120;
  auto const comment = std::string(section_said ? "" : "# ");
  auto line =
      str(comment, "  ", entry.said || !section_said ? "" : "# ", name_in_section(entry.path), ": ",
          entry.value.empty() ? key.default_value : entry.value);
  line.resize(std::max(line.size() + 1, column), ' ');
  line += "# " + key.meaning;
  auto const choices = key.type.find(" | ") != std::string::npos ? ": " + key.type : std::string();
  if (line.size() + choices.size() <= width && key.type != "true | false") line += choices;
  return (head ? comment + section_of(entry.path) + ":\n" : "") + line + "\n";
}

}  // namespace

std::string starter_config(Starter const& starter, std::vector<KeyDescription> const& keys) {
  auto text =
      str("# ", starter.model, " on ", starter.dataset, " under ", starter.strategy,
          ".\n# A key behind # has the value that is shown; `stratagem list keys` tells of all.\n"
          "schema: 1\n");
  auto const list = entries(starter, keys);
  std::string section;
  for (auto const& entry : list) {
    auto const key = std::ranges::find_if(keys, [&](KeyDescription const& known) {
      return known.path == entry.path && known.belongs_to({{"strategy", starter.strategy}});
    });
    ensures(key != keys.end(), "every key of a first configuration is one of the schema");
    auto const of_entry = section_of(entry.path);
    bool const said = std::ranges::any_of(
        list, [&](Entry const& other) { return other.said && section_of(other.path) == of_entry; });
    text += lines_of(entry, *key, of_entry != section, said);
    section = of_entry;
  }
  return text;
}

}  // namespace stratagem::app
