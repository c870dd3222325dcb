#pragma once

#include <string>
#include <string_view>

namespace stratagem {

/// A double-quoted YAML scalar that reads back as `text`, which is UTF-8.
std::string yaml_quoted(std::string_view text);

/// Like yaml_quoted(), but short enough for a message.
std::string abridged(std::string_view text);

/// A key as messages show it: unchanged, or abridged if it is not a word of letters, digits, _ and
/// -.
std::string shown_key(std::string_view key);

/// Position of the first byte that cannot be in a YAML file: not part of a UTF-8 code
/// point, or a control character other than tab and line ends. npos if there is none.
std::size_t find_foreign_byte(std::string_view text);

}  // namespace stratagem
