#include "app/help.hpp"

#include <algorithm>
#include <iostream>

#include "base/build_info.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "keys/suggestion.hpp"

namespace stratagem::app {
namespace {

constexpr std::size_t page_width = 80;
constexpr std::size_t meaning_column = 28;

constexpr Synonym command_synonyms[] = {
    {"train", "run", ""},           {"fit", "run", ""},
    {"start", "run", ""},           {"compare", "plan", "CONFIG --compare"},
    {"estimate", "plan", ""},       {"predict", "plan", ""},
    {"check", "plan", ""},          {"bench", "commbench", ""},
    {"benchmark", "commbench", ""}, {"models", "list", "models"},
    {"keys", "list", "keys"},       {"ls", "list", ""},
    {"study", "sweep", ""},         {"doctor", "info", ""},
    {"version", "--version", ""},
};

/// Lines of at most `width` characters, broken at spaces.
std::vector<std::string> wrapped(std::string const& text, std::size_t width) {
  std::vector<std::string> lines(1);
  for (auto const& word : split(text, ' ')) {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width)
      lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

/// A name and what it means, the meaning in a column of its own.
std::string entry(std::string name, std::string const& meaning) {
  std::string text = "  " + name;
  if (text.size() + 2 > meaning_column) text += "\n";
  auto const begun = text.size() - std::min(text.size(), text.rfind('\n') + 1);
  text.append(meaning_column - begun, ' ');
  auto const lines = wrapped(meaning, page_width - meaning_column);
  return text + join(lines, "\n" + std::string(meaning_column, ' ')) + "\n";
}

std::string name_of(Option const& option) {
  auto const letter =
      option.letter != '\0' ? std::string{'-', option.letter, ',', ' '} : std::string(4, ' ');
  if (option.value.empty()) return letter + "--" + option.name;
  return letter + "--" + option.name +
         (option.alone ? "[=" + option.value + "]" : " " + option.value);
}

std::string meaning_of(Option const& option) {
  auto text = option.meaning;
  if (!option.choices.empty()) text += (text.empty() ? "" : ": ") + join(option.choices, ", ");
  if (option.fallback) text += " [default: " + *option.fallback + "]";
  return text;
}

std::string usage_of(Word const& word) {
  auto const text = word.name + (word.repeats ? "..." : "");
  return word.required ? text : "[" + text + "]";
}

}  // namespace

std::string help_text(Options const& options) {
  auto const& command = options.command();
  auto text = "usage: stratagem " + command.name;
  for (auto const& word : options.declared_words()) text += " " + usage_of(word);
  text += " [options]\n\n" + join(wrapped(command.summary, page_width), "\n") + "\n\n";
  if (!options.note().empty()) text += join(wrapped(options.note(), page_width), "\n") + "\n\n";
  for (auto const& word : options.declared_words())
    text += entry(word.name, word.choices.empty() ? word.meaning
                                                  : word.meaning + ": " + join(word.choices, ", "));
  if (!options.declared_words().empty()) text += "\n";
  std::string own, common;
  for (auto const& option : options.declared())
    (option.common ? common : own) += entry(name_of(option), meaning_of(option));
  if (!own.empty()) text += "options:\n" + own + "\n";
  text += "options of every command:\n" + common;
  if (!options.examples().empty()) text += "\nexamples:\n";
  for (auto const& [line, meaning] : options.examples())
    text += "  " + join(wrapped(line, page_width - 4), " \\\n      ") + "\n      # " +
            join(wrapped(meaning, page_width - 8), "\n      # ") + "\n";
  return text;
}

std::string usage_text() {
  auto text = str("stratagem ", build_info().version,
                  ": which data-parallel strategy for this model on this cluster?\n\n"
                  "usage: stratagem COMMAND [options]\n\ncommands:\n");
  for (auto const& command : commands()) {
    auto name = command.name;
    name.resize(15, ' ');
    text += "  " + name + command.summary + '\n';
  }
  text +=
      "\n`stratagem COMMAND --help` and `stratagem help COMMAND` show details and examples;\n"
      "`stratagem --version` the version.\n\nexit codes:\n";
  for (auto const code : all_exit_codes) {
    auto number = std::to_string(to_int(code));
    number.insert(0, 3 - std::min<std::size_t>(number.size(), 3), ' ');
    text += str("  ", number, "  ", describe(code), '\n');
  }
  return text;
}

Command const& find_command(std::string const& name) {
  auto const found = std::ranges::find(commands(), name, &Command::name);
  if (found != commands().end()) return *found;
  std::vector<std::string> names{"--version"};
  for (auto const& command : commands()) names.push_back(command.name);
  auto const unknown = str("unknown ", name.starts_with('-') ? "option" : "command", " \"", name,
                           "\"", suggestion(name, names, command_synonyms));
  throw Error(ExitCode::usage, unknown, {}, "see `stratagem --help`");
}

void declare_help(Options& options) {
  Word word{.name = "COMMAND", .meaning = "one of them", .required = false};
  for (auto const& command : commands()) word.choices.push_back(command.name);
  options.add_word(word);
  options.add_example("stratagem help plan", "what `stratagem plan --help` says");
}

ExitCode execute_help(Options const& options) {
  auto const& words = options.words();
  std::cout << (words.empty() ? usage_text() : help_text(Options(find_command(words.front()))));
  return ExitCode::done;
}

}  // namespace stratagem::app
