#include "base/console/fit_text.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/console/table.hpp"
#include "base/console/terminal.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

/// Where a column begins and ends in every line, in characters.
using Span = std::pair<std::size_t, std::size_t>;

/// One string per character; in UTF-8, some characters have several bytes.
std::vector<std::string> characters(std::string const& line) {
  std::vector<std::string> all;
  for (char const c : line) {
    if ((c & 0xC0) == 0x80 && !all.empty())
      all.back() += c;
    else
      all.emplace_back(1, c);
  }
  return all;
}

/// Columns of "----  -----", the second line of every table; empty for any other line.
std::vector<Span> columns_of(std::string const& rule) {
  std::vector<Span> spans;
  if (rule.find_first_not_of("- ") != rule.npos || !rule.starts_with('-')) return spans;
  for (std::size_t begin = 0; begin < rule.size();) {
    auto const end = std::min(rule.find(' ', begin), rule.size());
    spans.emplace_back(begin, end);
    begin = std::min(rule.find('-', end), rule.size());
    if (begin < rule.size() && begin != end + 2) return {};
  }
  return spans;
}

std::string cell_of(std::vector<std::string> const& line, Span const& span) {
  std::string cell;
  for (auto i = span.first; i < std::min(span.second, line.size()); ++i) cell += line[i];
  auto const begin = std::min(cell.find_first_not_of(' '), cell.size());
  return cell.substr(begin, cell.find_last_not_of(' ') + 1 - begin);
}

bool blank_at(std::vector<std::string> const& line, std::size_t place) {
  return place >= line.size() || line[place] == " ";
}

/// Left if some text begins at the column's begin and ends before its end.
Align alignment(std::vector<std::vector<std::string>> const& lines, Span const& span) {
  bool const left = std::ranges::any_of(lines, [&](auto const& line) {
    return !blank_at(line, span.first) && blank_at(line, span.second - 1);
  });
  return left ? Align::left : Align::right;
}

std::string fit_table(std::vector<std::string> const& lines, std::vector<Span> const& spans,
                      int columns) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (i != 1) rows.push_back(characters(lines[i]));
  std::vector<Table::Column> titles;
  for (auto const& span : spans)
    titles.push_back({.title = cell_of(rows.front(), span), .align = alignment(rows, span)});
  Table table(titles);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    std::vector<std::string> cells;
    for (auto const& span : spans) cells.push_back(cell_of(rows[i], span));
    table.add_row(std::move(cells));
  }
  return table.render_within(columns);
}

/// Whether the text lies within the table's columns, with blanks between them.
bool is_row(std::string const& text, std::vector<Span> const& spans) {
  auto const line = characters(text);
  if (text.empty() || line.size() > spans.back().second) return false;
  return std::ranges::all_of(spans, [&](Span const& span) {
    return span.first == 0 || (blank_at(line, span.first - 1) && blank_at(line, span.first - 2));
  });
}

}  // namespace

std::string fit_text(std::string_view text, int columns) {
  auto lines = split(text, '\n');
  bool const has_tables =
      std::ranges::any_of(lines, [](auto const& line) { return !columns_of(line).empty(); });
  if (columns <= 0 || !has_tables) return std::string(text);
  bool const ends_line = lines.back().empty();
  if (ends_line) lines.pop_back();
  std::string fitted;
  for (std::size_t i = 0; i < lines.size();) {
    auto const spans = i + 1 < lines.size() ? columns_of(lines[i + 1]) : std::vector<Span>{};
    if (spans.empty()) {
      fitted += fold_lines(lines[i++], columns) + "\n";
      continue;
    }
    auto const begin = lines.begin() + static_cast<std::ptrdiff_t>(i);
    std::vector<std::string> table(begin, begin + 2);
    for (i += 2; i < lines.size() && is_row(lines[i], spans); ++i) table.push_back(lines[i]);
    bool const fits = spans.back().second <= static_cast<std::size_t>(columns);
    fitted += fits ? join(table, "\n") + "\n" : fit_table(table, spans, columns);
  }
  if (!ends_line) fitted.pop_back();
  return fitted;
}

}  // namespace stratagem
