#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <utility>

#include "base/arithmetic.hpp"

namespace stratagem {
namespace {

/// Letters that are inserted, left out, replaced, or swapped with a neighbour.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last, last, row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t const substitution = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substitution});
      bool const swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row.back();
}

template <class... Arguments>
std::string print(char const* format, Arguments... arguments) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, arguments...);
  return buffer.data();
}

}  // namespace

std::string join(std::span<std::string const> items, std::string_view separator) {
  std::string text;
  for (auto const& item : items) {
    if (&item != items.data()) text += separator;
    text += item;
  }
  return text;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    auto const end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::string_view trim(std::string_view text) {
  auto const first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::optional<std::string> closest(std::string_view word, std::span<std::string const> candidates) {
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(word.size() / 3, 1) + 1;
  for (auto const& candidate : candidates) {
    auto const longer = std::max(word.size(), candidate.size());
    if (longer - std::min(word.size(), candidate.size()) >= best_distance) continue;
    auto const distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<std::string const> candidates) {
  auto const candidate = closest(word, candidates);
  return candidate ? " (did you mean \"" + *candidate + "\"?)" : std::string{};
}

std::string format_bytes(double bytes) {
  if (std::isnan(bytes)) return "-";
  static constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (std::abs(bytes) >= 1024 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  int const digits = unit == 0 || std::abs(bytes) >= 100 ? 0 : std::abs(bytes) >= 10 ? 1 : 2;
  return print("%.*f %s", digits, bytes, units[unit]);
}

std::string bytes_text(std::int64_t bytes) {
  return format_bytes(static_cast<double>(bytes));
}

std::string format_duration(double seconds) {
  if (std::isnan(seconds)) return "-";
  if (seconds < 1e-3) return print("%.1f us", seconds * 1e6);
  if (seconds < 1) return print("%.1f ms", seconds * 1e3);
  if (seconds < 100) return print("%.1f s", seconds);
  auto const whole = saturated(seconds + 0.5);
  if (whole < 3600) return print("%ldm%02lds", whole / 60, whole % 60);
  return print("%ldh%02ldm%02lds", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string format_whole_seconds(double seconds) {
  if (std::isnan(seconds)) return "-";
  auto const whole = std::round(std::max(seconds, 0.0));
  return whole < 100 ? print("%.0f s", whole) : format_duration(whole);
}

std::string format_number(double value, int digits) {
  return std::isnan(value) ? "-" : print("%.*f", digits, value);
}

std::string format_count(std::int64_t value) {
  std::string const digits = std::to_string(value);
  std::size_t const sign = value < 0 ? 1 : 0;
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > sign && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::optional<std::int64_t> parse_bytes(std::string_view text) {
  auto const number_end = std::min(text.find_first_not_of("0123456789."), text.size());
  auto const number = parse_number(text.substr(0, number_end));
  std::string unit(trim(text.substr(number_end)));
  if (!number) return std::nullopt;
  for (char& c : unit)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  double factor = 1;
  if (!unit.empty()) {
    constexpr std::string_view prefixes = "kmgt";
    auto const power = prefixes.find(unit.front());
    if (power != std::string_view::npos) {
      factor = std::pow(1024.0, static_cast<double>(power + 1));
      unit.erase(0, 1);
    }
    if (!unit.empty() && unit != "b" && unit != "ib") return std::nullopt;
  }
  double const bytes = *number * factor;
  if (bytes > 9e18) return std::nullopt;
  return static_cast<std::int64_t>(bytes);
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::int64_t> parse_integers(std::string_view text) {
  std::vector<std::int64_t> numbers;
  for (auto const& word : split(text, ' '))
    if (auto const number = parse_integer(word)) numbers.push_back(*number);
  return numbers;
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

std::string shortest(double value) {
  std::array<char, 32> buffer{};
  auto const [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return error == std::errc{} ? std::string(buffer.data(), end) : "nan";
}

}  // namespace stratagem
