#include "app/options.hpp"

#include <array>
#include <cstdio>
#include <iostream>

#include <boost/program_options/parsers.hpp>
#include <unistd.h>

#include "base/error.hpp"
#include "base/system.hpp"
#include "base/text.hpp"

namespace stratagem::app {

namespace po = boost::program_options;

po::value_semantic* flag_value() {
  return po::bool_switch();
}

po::value_semantic* text_value(char const* default_value) {
  auto* value = po::value<std::string>();
  return default_value != nullptr ? value->default_value(default_value) : value;
}

po::value_semantic* text_value_if_given(char const* text) {
  return po::value<std::string>()->implicit_value(text);
}

po::value_semantic* texts_value() {
  return po::value<std::vector<std::string>>()->composing();
}

Options::Options(Command const& command) : command_(command), described_("options") {}

void Options::add_positional(char const* name, int count) {
  positional_.add(name, count);
  hidden_.add_options()(name, texts_value());
}

bool Options::parse(std::vector<std::string> const& arguments) {
  described_.add_options()("quiet,q", flag_value(), "warnings and errors only")(
      "verbose,v", flag_value(), "more detail")("color", text_value("auto"),
                                                "auto, always or never")(
      "progress", text_value("auto"), "auto, bar, line or none")("help,h", flag_value(),
                                                                 "this text");
  po::options_description all;
  all.add(described_).add(hidden_);
  namespace style = po::command_line_style;
  try {
    po::store(po::command_line_parser(arguments)
                  .options(all)
                  .positional(positional_)
                  .style(style::unix_style & ~style::allow_guessing)
                  .run(),
              values_);
    po::notify(values_);
  } catch (po::unknown_option const& problem) {
    std::vector<std::string> names;
    for (auto const& option : described_.options()) names.push_back("--" + option->long_name());
    throw Error(ExitCode::usage,
                str("stratagem ", command_.name, ": unknown option ", problem.get_option_name(),
                    did_you_mean(problem.get_option_name(), names)),
                {}, str("see `stratagem ", command_.name, " --help`"));
  } catch (po::error const& problem) {
    throw Error(ExitCode::usage, str("stratagem ", command_.name, ": ", problem.what()), {},
                str("see `stratagem ", command_.name, " --help`"));
  }
  if (flag("help")) print_help();
  return !flag("help");
}

void Options::print_help() const {
  std::cout << "usage: stratagem " << command_.name << ' ' << command_.usage << "\n\n"
            << command_.summary << "\n\n"
            << described_;
}

CommonOptions Options::common() const {
  CommonOptions common;
  if (flag("quiet")) common.level = LogLevel::warning;
  if (flag("verbose")) common.level = LogLevel::detail;
  static constexpr std::array<std::pair<char const*, ProgressStyle>, 4> styles{
      {{"auto", ProgressStyle::automatic},
       {"bar", ProgressStyle::bar},
       {"line", ProgressStyle::line},
       {"none", ProgressStyle::none}}};
  bool known = false;
  for (auto const& [name, style] : styles) {
    if (text("progress") != name) continue;
    common.progress = style;
    known = true;
  }
  if (!known)
    throw Error(ExitCode::usage, "--progress " + text("progress") + " is unknown", {},
                "take auto, bar, line or none");
  auto const color = text("color");
  if (color != "auto" && color != "always" && color != "never")
    throw Error(ExitCode::usage, "--color " + color + " is unknown", {},
                "take auto, always or never");
  common.color = color == "always" || (color == "auto" && shows_to_person(STDERR_FILENO));
  if (flag("quiet")) common.progress = ProgressStyle::none;
  return common;
}

std::vector<std::string> Options::texts(char const* name) const {
  return has(name) ? values_[name].as<std::vector<std::string>>() : std::vector<std::string>{};
}

std::int64_t Options::integer(char const* name, std::int64_t least, std::int64_t greatest) const {
  auto const value = parse_integer(text(name));
  if (!value || *value < least || *value > greatest)
    throw Error(ExitCode::usage, str("--", name, " ", text(name), " is not a whole number from ",
                                     least, " to ", greatest));
  return *value;
}

std::int64_t Options::bytes(char const* name) const {
  auto const value = parse_bytes(text(name));
  if (!value || *value < 0)
    throw Error(ExitCode::usage, str("--", name, " ", text(name), " is not a size"), {},
                "write it like 4096, 64K or 80GiB");
  return *value;
}

TableFormat table_format(std::string const& name) {
  if (name == "text") return TableFormat::text;
  if (name == "md") return TableFormat::markdown;
  if (name == "csv") return TableFormat::csv;
  if (name == "latex") return TableFormat::latex;
  throw Error(ExitCode::usage, "--format " + name + " is unknown", {},
              "take text, md, csv, latex or json");
}

}  // namespace stratagem::app
