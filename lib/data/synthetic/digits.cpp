#include <algorithm>
#include <array>
#include <cstdlib>

#include "data/synthetic/paint.hpp"
#include "data/synthetic/synthetic.hpp"

namespace stratagem {
namespace {

constexpr int edge = 28;   // [pixels]
constexpr int unit = 256;  // size of a glyph's cell
constexpr int columns = 5, rows = 7;

using Glyph = std::array<std::uint8_t, rows>;  // a row's five cells, the leftmost in bit 4

constexpr std::array<Glyph, 10> glyphs{{
    {0b01110, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b01110},
    {0b00100, 0b01100, 0b10100, 0b00100, 0b00100, 0b00100, 0b01110},
    {0b01110, 0b10001, 0b00001, 0b00110, 0b01000, 0b10000, 0b11111},
    {0b11110, 0b00001, 0b00001, 0b01110, 0b00001, 0b00001, 0b11110},
    {0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010},
    {0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110},
    {0b00110, 0b01000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110},
    {0b11111, 0b00001, 0b00010, 0b00010, 0b00100, 0b00100, 0b00100},
    {0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110},
    {0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00010, 0b01100},
}};

int cell(Glyph const& glyph, int column, int row) {
  if (column < 0 || column >= columns || row < 0 || row >= rows) return 0;
  return glyph[static_cast<std::size_t>(row)] >> (columns - 1 - column) & 1;
}

/// Amount of ink at (u, v), measured in units from the glyph's centre: 0 to unit.
int coverage(Glyph const& glyph, int u, int v) {
  int const x = u + (columns - 1) * unit / 2, y = v + (rows - 1) * unit / 2;
  int const column = x >> 8, row = y >> 8, fx = x & 255, fy = y & 255;
  int const top = cell(glyph, column, row) * (unit - fx) + cell(glyph, column + 1, row) * fx;
  int const bottom =
      cell(glyph, column, row + 1) * (unit - fx) + cell(glyph, column + 1, row + 1) * fx;
  int const smooth = (top * (unit - fy) + bottom * fy) / unit;
  return std::clamp((smooth - unit / 4) * 2, 0, unit);  // narrows the soft edge
}

void paint_digit(Draws& draws, int label, std::span<std::uint8_t> pixels) {
  auto const& glyph = glyphs[static_cast<std::size_t>(label)];
  // Positions are in half pixels from the centre; the matrix converts them to units of a cell.
  int const shift_x = draws.between(-8, 8), shift_y = draws.between(-6, 6);
  int const across = draws.between(38, 62), down = draws.between(38, 56);
  int const turn = draws.between(-14, 14), slant = turn + draws.between(-10, 10);
  int const ink = draws.between(120, 255);
  // A scratch: a line of half ink through a random point, with a random slope.
  int const scratch_x = draws.between(-20, 20), scratch_y = draws.between(-20, 20);
  int const slope_x = draws.between(-8, 8), slope_y = draws.between(1, 8);
  std::size_t pixel = 0;
  for (int y = 1 - edge; y < edge; y += 2) {
    for (int x = 1 - edge; x < edge; x += 2, ++pixel) {
      int const px = x - shift_x, py = y - shift_y;
      int value = ink * coverage(glyph, across * px + slant * py, down * py - turn * px) / unit;
      if (std::abs((x - scratch_x) * slope_x + (y - scratch_y) * slope_y) <= 6)
        value = std::max(value, ink / 2);
      pixels[pixel] = static_cast<std::uint8_t>(value);
    }
  }
  add_noise(draws, 64, pixels);
}

}  // namespace

Dataset make_synthetic_digits() {
  constexpr ImageShape shape{1, edge};
  return {.name = "synthetic-digits",
          .train = paint_set("synthetic-digits/train", synthetic_train_images, shape, paint_digit),
          .test = paint_set("synthetic-digits/test", synthetic_test_images, shape, paint_digit),
          .mean = {0.1528},
          .stddev = {0.2214}};
}

}  // namespace stratagem
