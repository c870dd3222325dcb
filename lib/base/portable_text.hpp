#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace stratagem {

/// In the middle of a code point of UTF-8.
bool is_continuation(char c);

bool is_control(char c);

/// "\x1b".
std::string hex_escape(char c);

/// "0xffd8": bytes as hexadecimal digits.
std::string hex_text(std::span<std::byte const> bytes);

/// Number of bytes of the code point at the start of `text`, which is not empty; 0 if there is
/// none, or NUL.
std::size_t code_point_size(std::string_view text);

/// On one line, with \x.. for control characters and for bytes that are not UTF-8; for messages
/// that repeat what a user wrote.
std::string printable(std::string_view text);

/// Well-formed UTF-8 (no overlong forms, no surrogates) without NUL: what YAML, JSON and file names
/// all accept.
bool is_portable_text(std::string_view text);

}  // namespace stratagem
