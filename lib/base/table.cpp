#include "base/table.hpp"

#include <algorithm>

#include "base/contract.hpp"

namespace stratagem {
namespace {

/// Columns on a terminal: bytes that are not the continuation of a UTF-8 character.
std::size_t width(std::string const& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string pad(std::string const& text, std::size_t to, Align align) {
  std::string const space(to > width(text) ? to - width(text) : 0, ' ');
  return align == Align::left ? text + space : space + text;
}

std::string quote_csv(std::string const& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string escape_latex(std::string const& text) {
  std::string escaped;
  for (char c : text) {
    if (std::string_view("&%$#_{}").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
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
  return render_text();
}

std::string Table::render_text() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    widths.push_back(width(columns_[c].title));
    for (auto const& row : rows_) widths[c] = std::max(widths[c], width(row[c]));
  }
  auto line = [&](auto const& cell) {
    std::string text;
    for (std::size_t c = 0; c < columns_.size(); ++c)
      text += (c ? "  " : "") + pad(cell(c), widths[c], columns_[c].align);
    return text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  };
  std::string text = line([&](std::size_t c) { return columns_[c].title; });
  text += line([&](std::size_t c) { return std::string(widths[c], '-'); });
  for (auto const& row : rows_) text += line([&](std::size_t c) { return row[c]; });
  return text;
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
  return text;
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
  std::string text = "\\begin{tabular}{";
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
