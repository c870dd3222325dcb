#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace stratagem {

/// So many first bytes of a file tell what it is.
inline constexpr std::size_t telling_bytes = 1024;

struct FileKind {
  std::string_view name;  ///< "a zip archive"
  enum class Content {
    tar,
    archive,
    packed,
    hdf5,
    array,
    image,
    table,
    document,
    model,
    pickle,
    other
  };
  Content content;
};

/// What a file is, by its first bytes; nullptr if they are not those of a format known here, as in
/// plain text.
FileKind const* kind_of(std::span<std::byte const> start);

/// Whether bytes, from anywhere in a file, may be text in UTF-8 or in a national code of one byte:
/// hardly any NUL and other control characters that no text has. UTF-16 and UTF-32 are none.
bool may_be_text(std::span<std::byte const> bytes);

}  // namespace stratagem
