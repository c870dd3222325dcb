#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/command.hpp"
#include "base/console/table.hpp"

namespace stratagem::app {

/// An option as its command declares it.
struct Option {
  std::string name = {};                  ///< after "--"
  char letter = '\0';                     ///< after "-"; '\0': none
  std::string value = {};                 ///< what help calls its value, such as N; empty: a flag
  std::vector<std::string> choices = {};  ///< the only values there are; empty: any
  bool or_path = false;                   ///< beside them, a path: a word with / or .
  std::optional<std::string> fallback = {};  ///< value where the option is not given
  std::optional<std::string> alone = {};     ///< value where it stands alone, not as --name=value
  bool repeats = false;                      ///< may be given several times
  bool common = false;                       ///< of every command
  std::string meaning = {};

  /// As help calls its value.
  bool names_file() const {
    return value == "FILE" || value == "DIR" || value == "FILE|NAME" || or_path;
  }
};

/// Whether a word that may be a name or a path is a path.
bool is_path(std::string const& word);

/// A word of a command that is no option.
struct Word {
  std::string name = {};                  ///< what help calls it, such as CONFIG
  std::string meaning = {};               ///< behind "name": "a study directory"
  std::vector<std::string> choices = {};  ///< the only ones there are; empty: any
  bool required = true;
  bool repeats = false;  ///< the last word alone: any number of it
};

struct Example {
  std::string line;
  std::string meaning;
};

enum class Unit { required, optional };

/// The options of a command: what there are, and, after parse(), what was given. Names are never
/// abbreviated.
class Options {
 public:
  /// Those that `command` declares and those that every command has.
  explicit Options(Command const& command);

  void add(Option option);
  void add_word(Word word);
  /// For --help: what the command does beyond its summary, and how it is used.
  void add_note(char const* text);
  void add_example(char const* line, char const* meaning);

  Command const& command() const { return command_; }
  bool declares(std::string const& name) const;
  std::vector<Option> const& declared() const { return options_; }
  std::vector<Word> const& declared_words() const { return words_; }
  std::string const& note() const { return note_; }
  std::vector<Example> const& examples() const { return examples_; }

  /// Error(usage) for what was not declared. `arguments` follow the command's name.
  void parse(std::vector<std::string> const& arguments);

  /// What parse() was given.
  std::vector<std::string> const& arguments() const { return arguments_; }
  /// The words that are no options, in order; with those that are required unless help was asked
  /// for.
  std::vector<std::string> const& words() const { return given_words_; }
  /// Whether it was given; a fallback is none.
  bool has(std::string const& name) const { return !texts_of(name).empty(); }
  bool flag(std::string const& name) const { return has(name); }
  /// Value of an option that was given or has a fallback.
  std::string text(std::string const& name) const;
  /// Values of an option that repeats.
  std::vector<std::string> const& texts(std::string const& name) const { return texts_of(name); }
  /// A whole number in [least, greatest]. Error(usage) naming the option otherwise.
  std::int64_t integer(std::string const& name, std::int64_t least, std::int64_t greatest) const;
  /// Bytes such as 80GiB or 256M. Error(usage) otherwise, and for a number other than 0 that lacks
  /// a required unit: 24 is seldom meant as bytes.
  std::int64_t bytes(std::string const& name, Unit unit = Unit::required) const;
  CommonOptions common() const;

 private:
  Option const& find(std::string const& name) const;
  std::vector<std::string> const& texts_of(std::string const& name) const;
  void check_values() const;
  void check_words() const;
  void expand_paths();

  Command const& command_;
  std::vector<Option> options_;
  std::vector<Word> words_;
  std::string note_;
  std::vector<Example> examples_;
  std::vector<std::string> arguments_, given_words_;
  std::map<std::string, std::vector<std::string>> given_;  // a flag's value is ""
};

/// Choices of --format, and what each stands for.
std::vector<std::string> const& table_formats();
TableFormat table_format(std::string const& name);

}  // namespace stratagem::app
