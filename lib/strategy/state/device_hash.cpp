#include "strategy/state/device_hash.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/contract.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t piece = 1 << 22;  // [words] at a time, which bounds the scratch memory
constexpr std::uint64_t spread = 0x9E3779B97F4A7C15;  // the golden ratio's bits, odd

at::Tensor words_of(at::Tensor const& tensor) {
  auto const flat = tensor.as_strided({tensor.numel()}, {1}, tensor.storage_offset());
  return flat.view(tensor.element_size() % 4 == 0   ? at::kInt
                   : tensor.element_size() % 2 == 0 ? at::kShort
                                                    : at::kByte);
}

}  // namespace

std::uint64_t device_hash(at::Tensor const& tensor) {
  expects(tensor.is_non_overlapping_and_dense(), "a dense tensor");
  at::NoGradGuard const no_grad;
  auto const words = words_of(tensor.detach());
  auto const type = at::TensorOptions().dtype(at::kLong).device(tensor.device());
  auto sum = at::zeros({}, type);
  for (std::int64_t begin = 0; begin < words.numel(); begin += piece) {
    auto const count = std::min(piece, words.numel() - begin);
    auto const factors = at::arange(2 * begin + 1, 2 * (begin + count), 2, type);
    sum += factors.mul_(words.narrow(0, begin, count)).sum();
  }
  return spread * static_cast<std::uint64_t>(sum.item<std::int64_t>());
}

}  // namespace stratagem
