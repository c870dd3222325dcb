#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace stratagem {

/// Where a user wrote something: in the file, or as an override on the command line.
struct Place {
  std::string text;  ///< "file:line:col" or "-s key=value"
  int line = 0;      ///< from 1; overrides come after every line
  int column = 0;    ///< from 1; of an override its number
};

Place place_in_file(std::string const& file, int line, int column);
Place place_of_override(int number, std::string const& text);

/// What is wrong with a configuration, collected so that a user sees all of it at once.
class Problems {
 public:
  /// `path` is the key's; empty where the problem is none of a key.
  void add(Place place, std::string path, std::string message);
  /// Those of `others` that are at places, or of keys, of which nothing is told yet.
  void add_new(Problems const& others);
  bool empty() const { return problems_.empty(); }
  /// True when there is no need to explain any more of them.
  bool fill_a_report() const;
  bool mention(std::string const& path) const;

  /// Error(usage) with one line "place: path: message" for each, in the order of their places; one
  /// that several runs of a study share is told once.
  [[noreturn]] void raise() const;

 private:
  struct Problem {
    Place place;
    std::string path;
    std::string message;
  };
  std::vector<Problem> problems_;
  std::size_t left_out_ = 0;  ///< beyond what anybody would read
};

}  // namespace stratagem
