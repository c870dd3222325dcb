#include "study/matrix.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "config/parse.hpp"
#include "config/study_file.hpp"
#include "keys/text_form.hpp"

namespace stratagem {
namespace {

constexpr std::size_t most_cells = 20000;
constexpr std::array derived_keys{"run.name", "run.out", "run.ranks"};

/// The position of a cell on one axis.
struct Choice {
  Axis const* axis;
  Axis::Value const* value;

  std::string const& text() const { return value->scalar.text; }
};
using Choices = std::vector<Choice>;

/// As a part of a file name.
std::string file_text(std::string text) {
  for (auto& c : text) {
    bool const plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '-';
    if (!plain) c = '_';
  }
  return text;
}

std::string label(Choice const& choice) {
  static std::map<std::string, std::string> const short_names{{"workers", "w"},
                                                              {"run.seed", "s"},
                                                              {"data.input_size", "px"},
                                                              {"data.global_batch", "b"},
                                                              {"optimizer.lr", "lr"}};
  auto const& axis = choice.axis->name;
  bool const speaks_for_itself = axis == "variant" || !parse_number(choice.text());
  if (speaks_for_itself) return file_text(choice.text());
  auto const known = short_names.find(axis);
  return (known == short_names.end() ? name_in_section(axis) : known->second) +
         file_text(choice.text());
}

/// Visits every combination of one value per axis, the last axis fastest.
template <class Visit>
void each_combination(std::vector<Axis> const& axes, Choices& chosen, Visit const& visit) {
  if (chosen.size() == axes.size()) return visit(std::as_const(chosen));
  auto const& axis = axes[chosen.size()];
  for (auto const& value : axis.values) {
    chosen.push_back({&axis, &value});
    each_combination(axes, chosen, visit);
    chosen.pop_back();
  }
}

bool holds(Exclusion const& exclusion, Choices const& choices) {
  return std::ranges::all_of(exclusion.where, [&](Axis const& axis) {
    auto const choice =
        std::ranges::find(choices, axis.name, [](Choice const& each) { return each.axis->name; });
    return choice != choices.end() &&
           std::ranges::any_of(axis.values, [&](Axis::Value const& value) {
             return value.scalar.text == choice->text();
           });
  });
}

class Expander {
 public:
  Expander(StudyFile const& file, std::vector<std::string> const& overrides,
           KnownNames const& names, Environment const& environment, Problems& problems)
      : file_(file),
        overrides_(overrides),
        names_(names),
        environment_(environment),
        problems_(problems) {}

  std::vector<Cell> cells() {
    refuse_overridden_axes();
    refuse_derived_keys(file_.base);
    for (auto const& variant : file_.variants) refuse_derived_keys(variant.settings);
    for (auto const& part : file_.parts) {
      refuse_derived_keys(part.base);
      if (is_sound(part)) expand(part);
    }
    // A part with a mistake in its matrix has no cells that could reveal its other mistakes.
    Problems alone;
    check_alone(settings_as_written(), overrides_, names_, environment_, alone);
    problems_.add_new(alone);
    return std::move(cells_);
  }

 private:
  /// Visits every place in the file that contains settings of cells.
  std::vector<Document> settings_as_written() const {
    std::vector<Document> settings{file_.base};
    for (auto const& variant : file_.variants) settings.push_back(variant.settings);
    for (auto const& part : file_.parts) {
      settings.push_back(part.base);
      for (auto const& axis : part.matrix)
        for (auto const& value : axis.values)
          if (auto const entry = entry_of(axis, value)) settings.push_back({{}, {*entry}});
    }
    return settings;
  }

  /// A value of an axis that is a key of the configuration.
  static std::optional<Entry> entry_of(Axis const& axis, Axis::Value const& value) {
    auto const section = section_of(axis.name);
    if (section.empty()) return std::nullopt;
    return Entry{section, name_in_section(axis.name), value.scalar, axis.place, value.place};
  }

  static std::string matrix_path(StudyPart const& part) { return "parts." + part.name + ".matrix"; }

  /// An override is of all cells: it would leave cells that differ in nothing but their names.
  void refuse_overridden_axes() {
    int number = 0;
    for (auto const& text : overrides_) {
      auto const place = place_of_override(++number, text);
      auto const path = text.substr(0, text.find('='));
      if (auto const varied = where_varied(path); !varied.empty())
        problems_.add(place, path, varied + "; leave it out, or change the study");
    }
  }

  /// What makes a key differ between cells; empty for nothing.
  std::string where_varied(std::string const& path) const {
    for (auto const& part : file_.parts)
      if (std::ranges::find(part.matrix, path, &Axis::name) != part.matrix.end())
        return "is an axis of " + matrix_path(part);
    for (auto const& variant : file_.variants)
      if (std::ranges::find(variant.settings.entries, path, &Entry::path) !=
          variant.settings.entries.end())
        return "is set by variant " + variant.name;
    return {};
  }

  void refuse_derived_keys(Document const& document) {
    for (auto const& entry : document.entries)
      if (std::ranges::count(derived_keys, entry.path()) > 0)
        problems_.add(entry.key_place, entry.path(), "follows from the matrix; leave it out");
  }

  /// Checks that need no cells of the part.
  bool is_sound(StudyPart const& part) {
    bool sound = true;
    auto const refuse = [&](Place const& place, std::string const& path, std::string message) {
      problems_.add(place, path, std::move(message));
      sound = false;
    };
    std::size_t count = 1;
    for (auto const& axis : part.matrix) {
      auto const path = matrix_path(part) + "." + axis.name;
      count = std::min(count * axis.values.size(), most_cells + 1);
      bool const known =
          axis.name == "variant" || axis.name == "workers" || !section_of(axis.name).empty();
      if (!known) refuse(axis.place, path, "is not an axis; take section.key, variant or workers");
      if (std::ranges::count(derived_keys, axis.name) > 0)
        refuse(axis.place, path, "follows from the matrix; workers says how many train");
      std::set<std::string> labels;
      for (auto const& value : axis.values) {
        auto const number = parse_number(value.scalar.text);  // 0.1 and 0.10 are the same
        if (!labels.insert(number ? shortest(*number) : label({&axis, &value})).second)
          refuse(value.place, path, abridged(value.scalar.text) + " is here twice");
        if (auto const complaint = complain(axis, value)) refuse(value.place, path, *complaint);
      }
    }
    if (count > most_cells)
      refuse(part.place, "parts." + part.name, str("has more than ", most_cells, " cells"));
    return check_exclusions(part) && sound;
  }

  /// Checks values of axes that are not keys.
  Complaint complain(Axis const& axis, Axis::Value const& value) const {
    auto const& text = value.scalar.text;
    if (axis.name == "workers") {
      auto const workers = parse_integer(text);
      if (!workers || *workers < 1 || *workers > 65536)
        return "is " + abridged(text) + ", must be a whole number from 1";
    }
    if (axis.name == "variant" && !find_variant(text)) {
      std::vector<std::string> names;
      for (auto const& variant : file_.variants) names.push_back(variant.name);
      return abridged(text) + " is not among the variants" + did_you_mean(text, names);
    }
    return {};
  }

  bool check_exclusions(StudyPart const& part) {
    bool sound = true;
    auto const path = "parts." + part.name + ".exclude";
    auto const refuse = [&](Place const& place, std::string message) {
      problems_.add(place, path, std::move(message));
      sound = false;
    };
    std::vector<std::string> names;
    for (auto const& axis : part.matrix) names.push_back(axis.name);
    for (auto const& exclusion : part.exclude)
      for (auto const& axis : exclusion.where) {
        auto const found = std::ranges::find(part.matrix, axis.name, &Axis::name);
        if (found == part.matrix.end()) {
          refuse(axis.place, shown_key(axis.name) + " is not an axis of this part" +
                                 did_you_mean(axis.name, names));
          continue;
        }
        for (auto const& value : axis.values) {
          bool const there = std::ranges::any_of(found->values, [&](Axis::Value const& other) {
            return other.scalar.text == value.scalar.text;
          });
          if (!there)
            refuse(value.place, abridged(value.scalar.text) + " is not a value of " + axis.name);
        }
      }
    return sound;
  }

  void expand(StudyPart const& part) {
    std::vector<bool> used(part.exclude.size());
    Choices chosen;
    each_combination(part.matrix, chosen, [&](Choices const& choices) {
      bool excluded = false;
      for (std::size_t i = 0; i < part.exclude.size(); ++i)
        if (holds(part.exclude[i], choices)) excluded = used[i] = true;
      if (!excluded) add_cell(part, choices);
    });
    for (std::size_t i = 0; i < used.size(); ++i)
      if (!used[i])
        problems_.add(part.exclude[i].place, "parts." + part.name + ".exclude",
                      "leaves out no cell");
  }

  Variant const* find_variant(std::string const& name) const {
    auto const found = std::ranges::find(file_.variants, name, &Variant::name);
    return found == file_.variants.end() ? nullptr : &*found;
  }

  /// What differs from the defaults of a run: the final states of all cells would fill a disk.
  Document defaults() const {
    return {{}, {Entry{"checkpoint", "at_end", {"false"}, file_.begin, file_.begin}}};
  }

  /// The sections of a cell, merged from all places with settings for it.
  Document settings(StudyPart const& part, Choices const& choices) const {
    auto settings = merged(merged(defaults(), file_.base), part.base);
    for (auto const& choice : choices)
      if (choice.axis->name == "variant")
        settings = merged(std::move(settings), find_variant(choice.text())->settings);
    Document axes;
    for (auto const& [axis, value] : choices)
      if (auto entry = entry_of(*axis, *value)) axes.entries.push_back(std::move(*entry));
    return merged(std::move(settings), axes);
  }

  void add_cell(StudyPart const& part, Choices const& choices) {
    Cell cell;
    cell.entry.index = static_cast<int>(cells_.size());
    name_cell(cell.entry, part, choices);
    if (!cell_names_.emplace(cell.entry.name, cell.entry.index).second)
      return problems_.add(part.place, "parts." + part.name,
                           "two cells of the study are called " + cell.entry.name);
    cell.config = read_config(settings(part, choices), part.place, overrides_, names_, environment_,
                              problems_);
    describe(cell.entry, cell.config);
    if (cell.entry.variant.empty()) cell.entry.variant = cell.entry.strategy;
    cell.config.run.name = cell.entry.name;
    cell.config.run.ranks = cell.entry.ranks();
    cell.config.run.out.clear();
    if (least_ranks(cell.config.strategy) == 1 && cell.entry.workers > 1)
      problems_.add(
          part.place, matrix_path(part),
          str(cell.entry.name, " is ", cell.entry.strategy, " with several workers; exclude it"));
    cells_.push_back(std::move(cell));
  }

  static void name_cell(CellEntry& entry, StudyPart const& part, Choices const& choices) {
    entry.part = entry.name = entry.group = part.name;
    std::vector<std::string> settings;
    for (auto const& choice : choices) {
      auto const& axis = choice.axis->name;
      settings.push_back(axis + "=" + choice.text());
      entry.name += "-" + label(choice);
      if (axis != "run.seed") entry.group += "-" + label(choice);
      if (axis == "variant") entry.variant = choice.text();
      if (axis == "workers") entry.workers = static_cast<int>(*parse_integer(choice.text()));
    }
    entry.settings = join(settings, ";");
  }

  StudyFile const& file_;
  std::vector<std::string> const& overrides_;
  KnownNames const& names_;
  Environment const& environment_;
  Problems& problems_;
  std::vector<Cell> cells_;
  std::map<std::string, int> cell_names_;
};

}  // namespace

Study read_study(std::string const& text, std::string const& file,
                 std::vector<std::string> const& overrides, KnownNames const& names,
                 Environment const& environment) {
  Problems problems;
  int number = 0;
  for (auto const& override_text : overrides) {
    ++number;
    auto const path = override_text.substr(0, override_text.find('='));
    if (std::ranges::count(derived_keys, path) > 0)
      problems.add(place_of_override(number, override_text), path,
                   "follows from the matrix; leave it out");
  }
  auto const parts = read_study_file(text, file, problems);
  if (!parts) problems.raise();
  Study study{.name = parts->name, .file = file, .text = text, .overrides = overrides, .cells = {}};
  study.cells = Expander(*parts, overrides, names, environment, problems).cells();
  if (problems.empty() && study.cells.empty())
    problems.add(parts->begin, "parts", "the study has no cell: all are excluded");
  if (!problems.empty()) problems.raise();
  return study;
}

}  // namespace stratagem
