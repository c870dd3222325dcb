#include "app/options.hpp"

#include <algorithm>
#include <array>

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <boost/program_options/positional_options.hpp>
#include <unistd.h>

#include "base/contract.hpp"
#include "base/error.hpp"
#include "base/system.hpp"
#include "base/text.hpp"
#include "keys/home.hpp"
#include "keys/suggestion.hpp"
#include "keys/text_form.hpp"
#include "keys/variables.hpp"

namespace stratagem::app {
namespace {

namespace po = boost::program_options;

constexpr char words_key[] = " words";  // no option is called so

po::value_semantic* semantic_of(Option const& option) {
  if (option.value.empty()) return po::bool_switch();
  auto* const value = po::value<std::string>();
  if (option.alone) value->implicit_value(*option.alone);
  return value;
}

/// Under what it is called when it is given.
std::string shown(Option const& option) {
  return "--" + option.name;
}

/// "a, b or c".
std::string any_of(std::vector<std::string> names) {
  auto const last = names.back();
  names.pop_back();
  return names.empty() ? last : join(names, ", ") + " or " + last;
}

/// section.key=value.
bool is_override(std::string const& word) {
  auto const dot = word.find('.'), equals = word.find('=');
  return dot < equals && equals != std::string::npos && word.find('/') > equals;
}

/// What a shell would have made of it, in places where it does not: behind = and in quotes.
std::string with_home(std::string const& what, std::string const& given) {
  auto home = expand_home(given, process_variable);
  if (home.complaint) throw Error(ExitCode::usage, what + " " + *home.complaint);
  return std::move(home.path);
}

/// GiB, M and so on.
bool is_unit(std::string const& word) {
  return !parse_number(word) && !parse_number(word.substr(0, 1)) && parse_bytes("1" + word);
}

std::vector<Option> common_options() {
  return {{.name = "quiet", .letter = 'q', .common = true, .meaning = "warnings and errors only"},
          {.name = "verbose", .letter = 'v', .common = true, .meaning = "more detail"},
          {.name = "color",
           .value = "WHEN",
           .choices = {"auto", "always", "never"},
           .fallback = "auto",
           .common = true,
           .meaning = "of messages"},
          {.name = "progress",
           .value = "STYLE",
           .choices = {"auto", "bar", "line", "none"},
           .fallback = "auto",
           .common = true,
           .meaning = "of training"},
          {.name = "help", .letter = 'h', .common = true, .meaning = "this text"}};
}

}  // namespace

bool is_path(std::string const& word) {
  return word.find_first_of("/.") != std::string::npos;
}

Options::Options(Command const& command) : command_(command) {
  command.declare(*this);
  std::ranges::move(common_options(), std::back_inserter(options_));
}

void Options::add(Option option) {
  options_.push_back(std::move(option));
}

void Options::add_word(Word word) {
  words_.push_back(std::move(word));
}

void Options::add_note(char const* text) {
  note_ = text;
}

void Options::add_example(char const* line, char const* meaning) {
  examples_.push_back({line, meaning});
}

void Options::parse(std::vector<std::string> const& arguments) {
  arguments_ = arguments;
  po::options_description described;
  for (auto const& option : options_) {
    auto const letter = option.letter != '\0' ? std::string{',', option.letter} : std::string();
    described.add_options()((option.name + letter).c_str(), semantic_of(option));
  }
  described.add_options()(words_key, po::value<std::string>());
  auto const see = str("see `stratagem ", command_.name, " --help`");
  namespace style = po::command_line_style;
  try {
    auto const parsed = po::command_line_parser(arguments)
                            .options(described)
                            .positional(po::positional_options_description().add(words_key, -1))
                            .style(style::unix_style & ~style::allow_guessing)
                            .run();
    for (auto const& option : parsed.options) {
      auto& values = option.string_key == words_key ? given_words_ : given_[option.string_key];
      if (option.value.empty()) values.push_back(find(option.string_key).alone.value_or(""));
      std::ranges::copy(option.value, std::back_inserter(values));
    }
  } catch (po::unknown_option const& problem) {
    std::vector<std::string> names;
    for (auto const& option : options_) names.push_back(shown(option));
    throw Error(ExitCode::usage,
                str("stratagem ", command_.name, ": unknown option ", problem.get_option_name(),
                    did_you_mean(problem.get_option_name(), names)),
                {}, see);
  } catch (po::error const& problem) {
    throw Error(ExitCode::usage, str("stratagem ", command_.name, ": ", problem.what()), {}, see);
  }
  check_values();
  if (!flag("help")) check_words();
  expand_paths();
}

void Options::expand_paths() {
  for (auto& word : given_words_) word = with_home(abridged(word), word);
  for (auto const& option : options_)
    if (option.names_file())
      for (auto& value : given_[option.name])
        value = with_home(str(shown(option), "=", value), value);
}

void Options::check_values() const {
  for (auto const& option : options_) {
    auto const& values = texts_of(option.name);
    if (values.size() > 1 && !option.repeats && !option.value.empty())
      throw Error(ExitCode::usage, shown(option) + " is given twice", {}, "take one of them");
    for (auto const& value : values)
      if (!option.choices.empty() && std::ranges::count(option.choices, value) == 0 &&
          !(option.or_path && is_path(value)))
        throw Error(ExitCode::usage,
                    str(shown(option), option.alone ? "=" : " ", value, " is unknown",
                        suggest_value(value, option.choices)),
                    {},
                    "take " + any_of(option.choices) +
                        (option.or_path ? "; a path has a / or a . in it" : ""));
  }
}

void Options::check_words() const {
  auto const refuse = [this](std::string const& what, std::string const& cure) {
    throw Error(ExitCode::usage, str("stratagem ", command_.name, ": ", what), {}, cure);
  };
  bool const any_number = !words_.empty() && words_.back().repeats;
  if (given_words_.size() > words_.size() && !any_number) {
    for (auto const& given : given_words_) {
      if (declares("set") && is_override(given))
        refuse("\"" + given + "\" is not an option or its value", "write -s " + given);
      if (is_unit(given))
        refuse("\"" + given + "\" is not an option or its value",
               "write a size as one word, such as 24" + given);
    }
    refuse("one word too many: \"" + given_words_.back() + "\"",
           str("see `stratagem ", command_.name, " --help`"));
  }
  for (std::size_t i = 0; i < given_words_.size(); ++i) {
    auto const& given = given_words_[i];
    auto const& choices = words_[std::min(i, words_.size() - 1)].choices;
    if (!choices.empty() && std::ranges::count(choices, given) == 0)
      refuse("there is no \"" + given + "\"" + suggest_value(given, choices),
             "take " + any_of(choices));
  }
  for (std::size_t i = given_words_.size(); i < words_.size(); ++i)
    if (words_[i].required)
      refuse(words_[i].name + " is missing", words_[i].choices.empty()
                                                 ? "name " + words_[i].meaning
                                                 : "take " + any_of(words_[i].choices));
}

CommonOptions Options::common() const {
  static constexpr std::array styles{ProgressStyle::automatic, ProgressStyle::bar,
                                     ProgressStyle::line, ProgressStyle::none};
  auto const& names = find("progress").choices;
  auto const style = std::ranges::find(names, text("progress")) - names.begin();
  CommonOptions common;
  common.progress =
      flag("quiet") ? ProgressStyle::none : styles.at(static_cast<std::size_t>(style));
  if (flag("quiet")) common.level = LogLevel::warning;
  if (flag("verbose")) common.level = LogLevel::detail;
  auto const color = text("color");
  common.color = color == "always" || (color == "auto" && shows_to_person(STDERR_FILENO));
  return common;
}

bool Options::declares(std::string const& name) const {
  return std::ranges::count(options_, name, &Option::name) > 0;
}

Option const& Options::find(std::string const& name) const {
  auto const found = std::ranges::find(options_, name, &Option::name);
  expects(found != options_.end(), "an option that is asked for was declared");
  return *found;
}

std::vector<std::string> const& Options::texts_of(std::string const& name) const {
  static std::vector<std::string> const none;
  auto const found = given_.find(find(name).name);
  return found != given_.end() ? found->second : none;
}

std::string Options::text(std::string const& name) const {
  if (has(name)) return texts_of(name).back();
  auto const& fallback = find(name).fallback;
  expects(fallback.has_value(), "an option without a fallback was given");
  return *fallback;
}

std::int64_t Options::integer(std::string const& name, std::int64_t least,
                              std::int64_t greatest) const {
  auto const value = parse_integer(text(name));
  if (!value || *value < least || *value > greatest)
    throw Error(ExitCode::usage, str("--", name, " ", text(name), " is not a whole number from ",
                                     least, " to ", greatest));
  return *value;
}

std::int64_t Options::bytes(std::string const& name, Unit unit) const {
  auto const given = text(name);
  auto const value = parse_bytes(given);
  auto const refuse = [&](std::string const& what, std::string const& cure) {
    throw Error(ExitCode::usage, str("--", name, " ", given, " ", what), {}, cure);
  };
  if (!value)
    refuse("is not a size", unit == Unit::required
                                ? "write the memory itself with its unit, such as 80GiB or 512MiB"
                                : "write it like 4096, 64K or 80GiB");
  bool const has_unit = !parse_number(given).has_value();
  if (unit == Unit::required && !has_unit && *value > 0)
    refuse("has no unit", str("write ", given, "GiB, or ", given, "B if bytes are meant"));
  return *value;
}

std::vector<std::string> const& table_formats() {
  static std::vector<std::string> const names{"text", "md", "csv", "latex"};
  return names;
}

TableFormat table_format(std::string const& name) {
  static constexpr std::array formats{TableFormat::text, TableFormat::markdown, TableFormat::csv,
                                      TableFormat::latex};
  auto const& names = table_formats();
  auto const found = std::ranges::find(names, name) - names.begin();
  return formats.at(static_cast<std::size_t>(found));
}

}  // namespace stratagem::app
