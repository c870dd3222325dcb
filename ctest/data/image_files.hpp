#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/encoded_files.hpp"
#include "data/files.hpp"

namespace stratagem::test {

/// A PNG file of `pixels` [height, width, 3].
inline void write_png(std::filesystem::path const& path, std::int64_t height, std::int64_t width,
                      std::vector<std::uint8_t> const& pixels) {
  std::filesystem::create_directories(path.parent_path());
  write_file(path, png({height, width, 3, pixels}, {"RGB", PNG_COLOR_TYPE_RGB, 8}));
}

/// An image of `edge` x `edge` pixels that tells `number`.
inline std::vector<std::uint8_t> numbered_pixels(std::uint32_t edge, std::uint32_t channels,
                                                 int number) {
  std::vector<std::uint8_t> pixels(std::size_t{edge} * edge * channels);
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<std::uint8_t>((7 * i + 31 * static_cast<std::size_t>(number)) % 251);
  return pixels;
}

/// `per_class` images of `edge` pixels in each class of one part of a data folder, numbered from
/// `first` on.
inline void write_classes(std::filesystem::path const& part,
                          std::vector<std::string> const& classes, int per_class,
                          std::uint32_t edge, int first = 0) {
  for (auto const& name : classes)
    for (int i = 0; i < per_class; ++i, ++first)
      write_png(part / name / (std::to_string(first) + ".png"), edge, edge,
                numbered_pixels(edge, 3, first));
}

}  // namespace stratagem::test
