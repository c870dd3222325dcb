#pragma once

#include <optional>
#include <string>
#include <vector>

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/positional_options.hpp>
#include <boost/program_options/variables_map.hpp>

#include "app/command.hpp"
#include "base/log.hpp"
#include "base/table.hpp"
#include "train/progress_display.hpp"
#include "train/run_config.hpp"

namespace stratagem::app {

/// A command's options while they are declared and read. Names are never abbreviated.
class Options {
 public:
  explicit Options(Command const& command);

  /// Declare options here, before parse().
  boost::program_options::options_description_easy_init add() { return described_.add_options(); }
  /// `name` takes up to `count` words that are no options; -1 any number.
  void add_positional(char const* name, int count);

  /// False when help was asked for and printed. Error(usage) for what was not declared.
  bool parse(std::vector<std::string> const& arguments);

  CommonOptions common() const;
  bool has(char const* name) const { return values_.count(name) > 0; }
  bool flag(char const* name) const { return values_[name].as<bool>(); }
  std::string text(char const* name) const { return values_[name].as<std::string>(); }
  std::vector<std::string> texts(char const* name) const;
  /// A whole number in [least, greatest]. Error(usage) naming the option otherwise.
  std::int64_t integer(char const* name, std::int64_t least, std::int64_t greatest) const;
  /// Bytes such as 80GiB or 256M. Error(usage) otherwise.
  std::int64_t bytes(char const* name) const;

 private:
  void print_help() const;

  Command const& command_;
  boost::program_options::options_description described_, hidden_;
  boost::program_options::positional_options_description positional_;
  boost::program_options::variables_map values_;
};

/// For boost: a flag without a value.
boost::program_options::value_semantic* flag_value();
boost::program_options::value_semantic* text_value(char const* default_value = nullptr);
/// `text` where the option stands alone; another is given as --option=other.
boost::program_options::value_semantic* text_value_if_given(char const* text);
boost::program_options::value_semantic* texts_value();

/// text, md, csv or latex. Error(usage) otherwise.
TableFormat table_format(std::string const& name);

}  // namespace stratagem::app
