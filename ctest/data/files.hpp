#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <zlib.h>

#include "support/expect_bad_data.hpp"
#include "support/scratch.hpp"

namespace stratagem::test {

inline void write_file(std::filesystem::path const& path, std::string const& content) {
  std::ofstream(path, std::ios::binary) << content;
}

inline std::string file_content(std::filesystem::path const& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_gzip(std::filesystem::path const& path, std::string const& content) {
  auto* file = gzopen(path.c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
}

/// An IDX file of unsigned bytes, whether or not sizes and values agree.
inline std::string idx_content(std::vector<std::uint32_t> const& sizes, std::string const& values) {
  std::string content{'\0', '\0', '\x08', static_cast<char>(sizes.size())};
  for (auto size : sizes)
    for (int shift = 24; shift >= 0; shift -= 8) content += static_cast<char>(size >> shift & 255);
  return content + values;
}

}  // namespace stratagem::test
