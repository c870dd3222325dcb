#include <algorithm>
#include <array>
#include <cstdlib>

#include "data/synthetic/paint.hpp"
#include "data/synthetic/synthetic.hpp"

namespace stratagem {
namespace {

constexpr int edge = 32;  // [pixels]
constexpr int channels = 3;
constexpr int unit = 512;  // a figure reaches about this far from its centre

enum class Figure { disc, ring, square, frame, triangle, diamond, plus, saltire, bars, half_disc };

/// Every figure is symmetric, or its mirror image still looks like its class.
bool inside(Figure figure, int u, int v) {
  int const au = std::abs(u), av = std::abs(v), far = std::max(au, av), near = std::min(au, av);
  int const square = u * u + v * v;
  switch (figure) {
    case Figure::disc:
      return square < unit * unit;
    case Figure::ring:
      return square < unit * unit && square > unit * unit * 3 / 8;
    case Figure::square:
      return far < unit * 7 / 8;
    case Figure::frame:
      return far < unit * 7 / 8 && far > unit / 2;
    case Figure::triangle:
      return v < unit * 3 / 4 && 2 * au < v + unit;
    case Figure::diamond:
      return au + av < unit * 9 / 8;
    case Figure::plus:
      return near < unit / 4 && far < unit;
    case Figure::saltire:
      return std::abs(au - av) < unit * 3 / 8 && far < unit * 3 / 4;
    case Figure::bars:
      return far < unit * 7 / 8 && (av < unit / 6 || av > unit / 2);
    case Figure::half_disc:
      return v < unit / 4 && square < unit * unit;
  }
  return false;
}

void paint_figure(Draws& draws, int label, std::span<std::uint8_t> pixels) {
  std::array<int, channels> ground{}, ink{};
  for (int& value : ground) value = draws.between(0, 150);
  for (int& value : ink) value = draws.between(105, 255);
  // Positions are in quarter pixels from the centre; the matrix converts them to the figure's
  // units.
  int const shift_x = draws.between(-16, 16), shift_y = draws.between(-16, 16);
  int const across = draws.between(10, 17), down = across + draws.between(-1, 1);
  int const turn = draws.between(-4, 4);
  auto hit = [&](int x, int y) {
    int const px = x - shift_x, py = y - shift_y;
    return inside(Figure{label}, across * px + turn * py, down * py - turn * px) ? 1 : 0;
  };
  std::size_t pixel = 0;
  for (int y = 2 - 2 * edge; y < 2 * edge; y += 4) {
    for (int x = 2 - 2 * edge; x < 2 * edge; x += 4, ++pixel) {
      int const covered =
          hit(x - 1, y - 1) + hit(x + 1, y - 1) + hit(x - 1, y + 1) + hit(x + 1, y + 1);
      for (std::size_t c = 0; c < channels; ++c)
        pixels[c * edge * edge + pixel] =
            static_cast<std::uint8_t>((ink[c] * covered + ground[c] * (4 - covered)) / 4);
    }
  }
  add_noise(draws, 48, pixels);
}

}  // namespace

Dataset make_synthetic_shapes() {
  constexpr ImageShape shape{channels, edge};
  return {.name = "synthetic-shapes",
          .train = paint_set("synthetic-shapes/train", synthetic_train_images, shape, paint_figure),
          .test = paint_set("synthetic-shapes/test", synthetic_test_images, shape, paint_figure),
          .mean = {0.378, 0.378, 0.378},
          .stddev = {0.248, 0.248, 0.248},
          .may_flip = true};
}

}  // namespace stratagem
