#include "base/console/table.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "base/contract.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

constexpr std::size_t gap = 2;          // spaces between two columns
constexpr std::size_t least_text = 20;  // characters, in a column of text
constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

/// Columns on a terminal: bytes, without the continuation bytes of UTF-8 characters.
std::size_t width(std::string const& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string pad(std::string const& text, std::size_t to, Align align) {
  std::string const space(to > width(text) ? to - width(text) : 0, ' ');
  return align == Align::left ? text + space : space + text;
}

std::size_t longest_word(std::string const& text) {
  std::size_t longest = 0;
  for (auto const& word : split(text, ' ')) longest = std::max(longest, width(word));
  return longest;
}

/// Splits at spaces if there are any; each part has at most `room` characters.
std::vector<std::string> in_lines(std::string const& text, std::size_t room) {
  if (width(text) <= room) return {text};
  std::vector<std::string> lines{""};
  for (auto word : split(text, ' ')) {
    bool const fits = width(lines.back()) + 1 + width(word) <= room;
    if (fits && !lines.back().empty()) {
      lines.back() += " " + word;
      continue;
    }
    if (!lines.back().empty()) lines.emplace_back();
    for (; width(word) > room; word.erase(0, room)) {
      lines.back() = word.substr(0, room);
      lines.emplace_back();
    }
    lines.back() = word;
  }
  return lines;
}

/// A number of groups of three digits, such as 1,234,567.
bool is_grouped(std::string_view text) {
  auto const groups = split(text, ',');
  auto const is_digits = [](auto const& group) {
    return std::ranges::all_of(group, [](char c) { return c >= '0' && c <= '9'; });
  };
  auto const is_three = [](auto const& group) { return group.size() == 3; };
  return groups.size() > 1 && !groups.front().empty() && groups.front().size() <= 3 &&
         std::all_of(groups.begin() + 1, groups.end(), is_three) &&
         std::ranges::all_of(groups, is_digits);
}

/// Quoted where needed. Programs read numbers without separators.
std::string quote_csv(std::string text) {
  if (is_grouped(text)) std::erase(text, ',');
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string escape_latex(std::string const& text) {
  std::string escaped;
  for (char c : text) {
    switch (c) {
      case '\\':
        escaped += "\\textbackslash{}";
        break;
      case '~':
        escaped += "\\textasciitilde{}";
        break;
      case '^':
        escaped += "\\textasciicircum{}";
        break;
      case '<':
      case '>':
        escaped += std::string("$") + c + "$";
        break;
      default:
        if (std::string_view("&%$#_{}").find(c) != std::string_view::npos) escaped += '\\';
        escaped += c;
    }
  }
  return escaped;
}

}  // namespace

void Table::add_row(std::vector<std::string> cells) {
  expects(cells.size() == columns_.size(), "a row has one cell per column");
  rows_.push_back(std::move(cells));
}

std::string Table::render(TableFormat format) const {
  switch (format) {
    case TableFormat::markdown:
      return render_markdown();
    case TableFormat::csv:
      return render_csv();
    case TableFormat::latex:
      return render_latex();
    case TableFormat::text:
      break;
  }
  return render_within(0);
}

std::size_t Table::natural_width(std::size_t column) const {
  auto widest = width(columns_[column].title);
  for (auto const& row : rows_) widest = std::max(widest, width(row[column]));
  return widest;
}

std::size_t Table::least_width(std::size_t column) const {
  auto least = longest_word(columns_[column].title);
  if (columns_[column].align == Align::left)
    return std::min(natural_width(column), std::max(least, least_text));
  for (auto const& row : rows_) least = std::max(least, width(row[column]));
  return least;
}

Table::Layout Table::fitted(std::vector<std::size_t> shown, std::size_t room) const {
  Layout layout{.shown = std::move(shown), .widths = {}};
  std::vector<std::size_t> least, whole_words;
  auto total = gap * (layout.shown.size() - 1);
  for (auto const column : layout.shown) {
    layout.widths.push_back(natural_width(column));
    least.push_back(least_width(column));
    whole_words.push_back(least.back());
    for (auto const& row : rows_)
      whole_words.back() = std::max(whole_words.back(), longest_word(row[column]));
    total += layout.widths.back();
  }
  // Words stay whole as long as that suffices.
  auto const text = [&](std::size_t i) { return columns_[layout.shown[i]].align == Align::left; };
  struct {
    bool texts_only;
    std::vector<std::size_t> const& least;
  } const passes[]{{true, whole_words}, {true, least}, {false, least}};
  for (auto const& pass : passes) {
    for (; total > room; --total) {
      std::optional<std::size_t> widest;
      for (std::size_t i = 0; i < least.size(); ++i) {
        bool const wraps = !pass.texts_only || text(i);
        if (wraps && layout.widths[i] > pass.least[i] &&
            (!widest || layout.widths[i] > layout.widths[*widest]))
          widest = i;
      }
      if (!widest) break;
      --layout.widths[*widest];
    }
  }
  return layout;
}

std::string Table::render_lines(Layout const& layout) const {
  std::string text;
  auto const add = [&](std::vector<std::string> const& cells) {
    std::vector<std::vector<std::string>> parts;
    std::size_t height = 0;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      parts.push_back(in_lines(cells[i], layout.widths[i]));
      height = std::max(height, parts.back().size());
    }
    for (std::size_t part = 0; part < height; ++part) {
      std::string line;
      for (std::size_t i = 0; i < cells.size(); ++i)
        line += std::string(i > 0 ? gap : 0, ' ') +
                pad(part < parts[i].size() ? parts[i][part] : "", layout.widths[i],
                    columns_[layout.shown[i]].align);
      text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
  };
  std::vector<std::string> titles, rules;
  for (std::size_t i = 0; i < layout.shown.size(); ++i) {
    titles.push_back(columns_[layout.shown[i]].title);
    rules.emplace_back(layout.widths[i], '-');
  }
  add(titles);
  add(rules);
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    std::vector<std::string> cells;
    for (std::size_t i = 0; i < layout.shown.size(); ++i) {
      auto const& cell = rows_[r][layout.shown[i]];
      bool const again =
          r > 0 && width(cell) > layout.widths[i] && i > 0 && rows_[r - 1][layout.shown[i]] == cell;
      cells.push_back(again ? "as above" : cell);
    }
    add(cells);
  }
  return text;
}

std::string Table::render_within(int columns) const {
  std::vector<std::size_t> all(columns_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  auto const room = columns > 0 ? static_cast<std::size_t>(columns) : no_limit;
  std::string text;
  for (std::size_t next = 1; next <= all.size();) {
    std::vector<std::size_t> shown{0};
    auto used = least_width(0);
    while (next < all.size()) {
      used += gap + least_width(next);
      if (used > room && shown.size() > 1) break;
      shown.push_back(next++);
    }
    text += (text.empty() ? "" : "\n") + render_lines(fitted(std::move(shown), room));
    if (next == all.size()) break;
  }
  return text + (note_.empty() ? "" : note_ + "\n");
}

std::string Table::render_markdown() const {
  std::string text = "|", rule = "|";
  for (auto const& column : columns_) {
    text += " " + column.title + " |";
    rule += column.align == Align::left ? " --- |" : " ---: |";
  }
  text += "\n" + rule + "\n";
  for (auto const& row : rows_) {
    text += "|";
    for (auto const& cell : row) text += " " + cell + " |";
    text += "\n";
  }
  return text + (note_.empty() ? "" : "\n" + note_ + "\n");
}

std::string Table::render_csv() const {
  auto line = [&](auto const& cell) {
    std::string text;
    for (std::size_t c = 0; c < columns_.size(); ++c) text += (c ? "," : "") + quote_csv(cell(c));
    return text + "\n";
  };
  std::string text = line([&](std::size_t c) { return columns_[c].title; });
  for (auto const& row : rows_) text += line([&](std::size_t c) { return row[c]; });
  return text;
}

std::string Table::render_latex() const {
  std::string text = "% needs \\usepackage{booktabs}\n";
  if (!note_.empty()) text += "% " + note_ + "\n";
  text += "\\begin{tabular}{";
  for (auto const& column : columns_) text += column.align == Align::left ? 'l' : 'r';
  text += "}\n\\toprule\n";
  auto line = [&](auto const& cell) {
    for (std::size_t c = 0; c < columns_.size(); ++c)
      text += (c ? " & " : "") + escape_latex(cell(c));
    text += " \\\\\n";
  };
  line([&](std::size_t c) { return columns_[c].title; });
  text += "\\midrule\n";
  for (auto const& row : rows_) line([&](std::size_t c) { return row[c]; });
  return text + "\\bottomrule\n\\end{tabular}\n";
}

}  // namespace stratagem
