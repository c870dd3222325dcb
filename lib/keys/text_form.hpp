#pragma once

#include <string>
#include <string_view>

namespace stratagem {

/// A double-quoted YAML scalar that reads back as `text`, which is UTF-8.
std::string yaml_quoted(std::string_view text);

/// As yaml_quoted(), but of a length that fits into a message.
std::string abridged(std::string_view text);

/// On one line, control characters and bytes that are no UTF-8 replaced by \x.., for messages that
/// repeat what a user wrote.
std::string printable(std::string_view text);

/// A key as messages show it: itself, or abridged where it is no word of letters, digits, _ and -.
std::string shown_key(std::string_view key);

/// Well-formed UTF-8 (no overlong forms, no surrogates) without NUL: what YAML, JSON and file names
/// can all hold.
bool is_portable_text(std::string_view text);

/// Position of the first byte that no YAML file has: part of no UTF-8 code point, or a control
/// character other than tab and line ends. npos where all is well.
std::size_t find_foreign_byte(std::string_view text);

}  // namespace stratagem
