#include "compress/block_codes.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

using namespace stratagem;

namespace {

constexpr Code codes[] = {Code::bf16,    Code::fp16,    Code::int8, Code::int4,
                          Code::natural, Code::ternary, Code::sign};
constexpr std::size_t block = block_elements;

/// Writes whole blocks of numbers and reads them: what is not finite does not become finite.
void pass_through(Code code, std::vector<float> const& numbers, std::uint8_t const* draws) {
  auto const functions = block_codes::functions_of(code);
  auto const blocks = static_cast<std::int64_t>(numbers.size() / block);
  // Of the sizes that count: a byte too far is an error of memory.
  std::vector<std::byte> wire(static_cast<std::size_t>(wire_bytes(code, blocks)));
  std::vector<float> found(numbers.size());
  functions.encode(numbers.data(), blocks, draws, wire.data());
  functions.decode(wire.data(), blocks, found.data());
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (!std::isfinite(numbers[i]) && std::isfinite(found[i])) std::abort();
}

/// Reads what has arrived, and passes that on.
void arrive(Code code, std::span<std::byte const> bytes, std::uint8_t const* draws) {
  auto const blocks = bytes.size() / static_cast<std::size_t>(wire_bytes(code, 1));
  std::vector<std::byte> const wire(bytes.begin(), bytes.end());
  std::vector<float> values(blocks * block);
  block_codes::functions_of(code).decode(wire.data(), static_cast<std::int64_t>(blocks),
                                         values.data());
  pass_through(code, values, draws);
}

}  // namespace

/// The first byte chooses how to round; the rest is a code, and numbers.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  if (size < 1) return 0;
  auto const bytes = std::as_bytes(std::span(data + 1, size - 1));
  auto const blocks = bytes.size() / (block * sizeof(float));
  std::vector<float> numbers(blocks * block);
  if (blocks > 0) std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(float));
  std::vector<std::uint8_t> const draws(32 * size, data[0]);  // one per element of any code
  for (auto const code : codes) {
    auto const* const drawn = data[0] % 2 == 0 ? nullptr : draws.data();
    arrive(code, bytes, drawn);
    pass_through(code, numbers, drawn);
  }
  return 0;
}
