#pragma once

#include <string>
#include <string_view>

namespace stratagem {

/// ASCII letters in lower case.
inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

/// Whether a file with this extension, in lower case and without its dot, is read as an image.
inline bool is_image_extension(std::string_view extension) {
  return extension == "jpg" || extension == "jpeg" || extension == "png";
}

}  // namespace stratagem
