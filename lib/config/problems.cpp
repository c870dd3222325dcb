#include "config/problems.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "base/portable_text.hpp"
#include "base/text.hpp"
#include "keys/text_form.hpp"

namespace stratagem {
namespace {

constexpr std::size_t most_lines = 100;  // of one report
constexpr std::size_t most_kept = 1000;  // some may turn out to be one

}  // namespace

Place place_in_file(std::string const& file, int line, int column) {
  return {str(file, ':', line, ':', column), line, column};
}

Place place_of_override(int number, std::string const& text) {
  constexpr std::size_t longest = 80;
  return {"-s " + (text.size() <= longest ? printable(text) : abridged(text)),
          std::numeric_limits<int>::max(), number};
}

void Problems::add(Place place, std::string path, std::string message) {
  if (problems_.size() < most_kept)
    problems_.push_back({std::move(place), std::move(path), std::move(message)});
  else
    ++left_out_;
}

void Problems::add_new(Problems const& others) {
  std::set<std::pair<std::string, std::string>> told;
  for (auto const& [place, path, message] : problems_) told.emplace(place.text, path);
  for (auto const& [place, path, message] : others.problems_)
    if (!told.contains({place.text, path})) add(place, path, message);
  left_out_ += others.left_out_;
}

bool Problems::fill_a_report() const {
  return problems_.size() >= most_lines;
}

bool Problems::mention(std::string const& path) const {
  return std::ranges::count(problems_, path, &Problem::path) > 0;
}

void Problems::raise() const {
  auto sorted = problems_;
  std::ranges::stable_sort(sorted, {}, [](Problem const& problem) {
    return std::tuple(problem.place.line, problem.place.column);
  });
  std::vector<std::string> lines;
  std::set<std::string> told;
  for (auto const& [place, path, message] : sorted) {
    auto line = place.text + ": " + (path.empty() ? "" : path + ": ") + message;
    if (told.insert(line).second && lines.size() < most_lines) lines.push_back(std::move(line));
  }
  if (auto const all = told.size() + left_out_; all > most_lines)
    lines.push_back(str("and ", all - most_lines, " more"));
  throw Error(ExitCode::usage, join(lines, "\n"));
}

}  // namespace stratagem
