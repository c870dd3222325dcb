#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace stratagem {

/// The arguments printed one after the other.
template <class... Parts>
std::string str(Parts const&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

std::string join(std::span<std::string const> items, std::string_view separator);
std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);

/// The candidate with the smallest edit distance, if it is near enough to be a likely misspelling.
std::optional<std::string> closest(std::string_view word, std::span<std::string const> candidates);

/// " (did you mean \"x\"?)" or "".
std::string did_you_mean(std::string_view word, std::span<std::string const> candidates);

/// 1536 -> "1.5 KiB".
std::string format_bytes(double bytes);
std::string bytes_text(std::int64_t bytes);
/// 0.0123 s -> "12.3 ms"; 4000 s -> "1h06m40s".
std::string format_duration(double seconds);
/// In whole seconds, for estimates: 47.3 s -> "47 s"; 4000 s -> "1h06m40s".
std::string format_whole_seconds(double seconds);
/// Fixed number of digits after the point; NaN becomes "-".
std::string format_number(double value, int digits);
/// 134301514 -> "134,301,514".
std::string format_count(std::int64_t value);

/// "80GiB", "1K", "256M", "4096": K, M, G are powers of 1024. Empty if it is none of these.
std::optional<std::int64_t> parse_bytes(std::string_view text);
std::optional<std::int64_t> parse_integer(std::string_view text);
/// "3 0 128 " -> 3, 0, 128; words that are not integers are skipped.
std::vector<std::int64_t> parse_integers(std::string_view text);
/// Decimal floating point, the whole text; no NaN, no infinity, no hexadecimal.
std::optional<double> parse_number(std::string_view text);

/// The shortest decimal text that reads back as the same double.
std::string shortest(double value);

}  // namespace stratagem
