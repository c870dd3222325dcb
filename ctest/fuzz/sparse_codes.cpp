#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "compress/sparse_code.hpp"

using namespace stratagem;

namespace {

/// Of a tensor of so many elements: a code that arrives is added, or refused before anything is.
void arrive(std::span<std::byte const> bytes, std::size_t numel) {
  auto const count = bytes.size() / sparse_code::element_bytes;
  // Of the sizes that count: a byte too far is an error of memory.
  std::vector<std::byte> const wire(bytes.begin(),
                                    bytes.begin() + count * sparse_code::element_bytes);
  std::vector<float> sums(numel);
  try {
    sparse_code::add(wire, sums);
  } catch (AgreedError const& error) {
    if (error.code() != ExitCode::mismatch) std::abort();
    if (!std::ranges::all_of(sums, [](float sum) { return sum == 0; })) std::abort();
  }
}

/// The largest of any numbers are written and read: none beside them is larger.
void pass_through(std::vector<float> const& numbers, std::size_t count) {
  std::vector<std::uint32_t> places(count);
  sparse_code::select_largest(numbers, places);
  std::vector<std::byte> wire(count * sparse_code::element_bytes);
  sparse_code::write(places, numbers, wire);
  std::vector<float> found(numbers.size()), rest(numbers);
  sparse_code::add(wire, found);
  sparse_code::clear(places, rest);
  auto const magnitude = [](float value) { return std::bit_cast<std::uint32_t>(value) << 1; };
  auto least = ~std::uint32_t{0};
  for (auto const place : places) least = std::min(least, magnitude(numbers[place]));
  for (float const left : rest)
    if (magnitude(left) > least) std::abort();
}

}  // namespace

/// The first byte chooses a size; the rest is a code, and numbers.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  if (size < 1) return 0;
  auto const bytes = std::as_bytes(std::span(data + 1, size - 1));
  arrive(bytes, data[0]);
  std::vector<float> numbers(bytes.size() / sizeof(float));
  if (numbers.empty()) return 0;
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(float));
  pass_through(numbers, 1 + data[0] % numbers.size());
  return 0;
}
