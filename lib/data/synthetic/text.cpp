#include <array>
#include <memory>
#include <utility>

#include "base/random.hpp"
#include "data/synthetic/synthetic.hpp"

namespace stratagem {
namespace {

constexpr std::size_t symbols = synthetic_text_symbols;
constexpr std::size_t successors = 4;
// Probabilities of 0.5, 0.25, 0.15 and 0.1, as 32-bit words below which they are drawn.
constexpr std::array<std::uint32_t, successors - 1> bounds{0x80000000U, 0xC0000000U, 0xE6666666U};

using Choices = std::array<std::uint8_t, successors>;

/// After every two symbols: four different ones, the most probable first.
std::array<Choices, symbols * symbols> draw_choices() {
  CounterRandom const random(0, "synthetic-text/choices");
  std::array<Choices, symbols * symbols> all{};
  for (std::size_t context = 0; context < all.size(); ++context) {
    std::array<std::uint8_t, symbols> left{};
    for (std::size_t i = 0; i < symbols; ++i) left[i] = static_cast<std::uint8_t>(i);
    auto const words = random.block(context);
    for (std::size_t i = 0; i < successors; ++i) {
      std::swap(left[i], left[i + words[i] % (symbols - i)]);
      all[context][i] = left[i];
    }
  }
  return all;
}

std::vector<std::uint8_t> draw(std::array<Choices, symbols * symbols> const& choices,
                               std::string_view stream, std::int64_t count) {
  CounterRandom const random(0, stream);
  std::vector<std::uint8_t> text(static_cast<std::size_t>(count));
  std::size_t before = 0, last = 1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto const word = random.word(i);
    std::size_t rank = 0;
    while (rank < bounds.size() && word >= bounds[rank]) ++rank;
    text[i] = choices[before * symbols + last][rank];
    before = std::exchange(last, text[i]);
  }
  return text;
}

}  // namespace

Dataset make_synthetic_text(std::int64_t length) {
  auto const choices = draw_choices();
  auto const set_of = [&](std::string_view stream, std::int64_t count) {
    auto sequences = std::make_shared<Sequences const>(
        std::vector{TokenText(draw(choices, stream, count))}, length, synthetic_text_symbols, 0.0);
    auto const size = sequences->size();
    return SampleSet{.text = std::move(sequences), .sequences = size};
  };
  return {.name = "synthetic-text",
          .classes = synthetic_text_symbols,
          .train = set_of("synthetic-text/train", synthetic_train_tokens),
          .test = set_of("synthetic-text/test", synthetic_test_tokens)};
}

}  // namespace stratagem
