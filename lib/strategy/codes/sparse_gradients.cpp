#include "strategy/codes/sparse_gradients.hpp"

#include <cstring>
#include <limits>
#include <variant>

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "compress/sparse_code.hpp"
#include "strategy/codes/compressed.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t number_bytes = sizeof(float);

template <class Element>
std::span<Element> part(std::span<Element> whole, FlatRange range) {
  return whole.subspan(static_cast<std::size_t>(range.begin),
                       static_cast<std::size_t>(range.size()));
}

}  // namespace

SparseMessage sparse_message(Compression const& compression, ParameterLayout const& layout,
                             FlatRange range) {
  SparseMessage message{.range = range, .tensors = {}};
  auto const bytes = compression.places_travel() ? sparse_code::element_bytes : number_bytes;
  for (std::size_t i = 0; i < layout.entries().size(); ++i) {
    auto const& entry = layout.entries()[i];
    if (entry.offset < range.begin || entry.offset >= range.end) continue;
    auto const numel = entry.spec.numel();
    expects(numel <= std::numeric_limits<std::uint32_t>::max(), "places have 32 bits");
    auto const count = sparse_code::count_of(compression.ratio, numel);
    FlatRange const wire{message.bytes, message.bytes + count * bytes};
    message.tensors.push_back({i, {entry.offset, entry.offset + numel}, count, wire});
    message.count += count;
    message.bytes = wire.end;
  }
  return message;
}

SparseMemory::SparseMemory(Compression const& compression, ParameterLayout const& layout) {
  if (compression.error_feedback) residual = at::zeros({layout.size()}, at::kFloat);
  if (compression.momentum_correction) velocity = at::zeros({layout.size()}, at::kFloat);
}

std::vector<std::pair<std::string_view, at::Tensor>> kinds_of(SparseMemory const& memory) {
  std::vector<std::pair<std::string_view, at::Tensor>> kinds;
  if (memory.residual.defined()) kinds.emplace_back(Compression::residual, memory.residual);
  if (memory.velocity.defined()) kinds.emplace_back(Compression::velocity, memory.velocity);
  return kinds;
}

SparseGradients::SparseGradients(Compression const& compression, OptimizerConfig const& optimizer,
                                 std::uint64_t seed)
    : compression_(compression), random_(seed, "random_k") {
  if (compression.momentum_correction)
    momentum_ = static_cast<float>(std::get<SgdConfig>(optimizer.rule).momentum);
}

void SparseGradients::encode(SparseMessage const& message, std::span<float const> gradients,
                             SparseMemory const& memory, std::int64_t step,
                             std::span<std::byte> wire) {
  auto const residual = numbers_of(memory.residual), velocity = numbers_of(memory.velocity);
  for (auto const& tensor : message.tensors) {
    auto const values = wanted(tensor, gradients, memory);
    auto const code = part(wire, tensor.wire);
    places_.resize(static_cast<std::size_t>(tensor.count));
    if (compression_.places_travel()) {
      sparse_code::select_largest(values, places_);
      sparse_code::write(places_, values, code);
    } else {
      draw(tensor, step);
      auto* number = code.data();
      for (auto const place : places_) {
        auto const value = scale_of(tensor) * values[place];
        std::memcpy(number, &value, sizeof(value));
        number += sizeof(value);
      }
    }
    if (!residual.empty()) sparse_code::clear(places_, part(residual, tensor.range));
    if (!velocity.empty()) sparse_code::clear(places_, part(velocity, tensor.range));
  }
}

std::span<float const> SparseGradients::wanted(SparseTensor const& tensor,
                                               std::span<float const> gradients,
                                               SparseMemory const& memory) const {
  auto const own = part(gradients, tensor.range);
  if (!memory.residual.defined()) return own;
  auto const residual = part(numbers_of(memory.residual), tensor.range);
  if (memory.velocity.defined())
    sparse_code::accumulate(own, momentum_, part(numbers_of(memory.velocity), tensor.range),
                            residual);
  else
    sparse_code::accumulate(own, residual);
  return residual;
}

void SparseGradients::draw(SparseTensor const& tensor, std::int64_t step) {
  constexpr int entry_bits = 24;
  auto const sequence = static_cast<std::uint64_t>(step) << entry_bits | tensor.entry;
  sparse_code::draw_places(random_, sequence, tensor.range.size(), places_);
}

float SparseGradients::scale_of(SparseTensor const& tensor) const {
  if (compression_.error_feedback) return 1;
  return static_cast<float>(static_cast<double>(tensor.range.size()) /
                            static_cast<double>(tensor.count));
}

void SparseGradients::add(SparseMessage const& message, std::span<std::byte const> wire,
                          std::int64_t step, std::span<float> sums) {
  for (auto const& tensor : message.tensors) {
    auto const code = part(wire, tensor.wire);
    auto const own = part(sums, tensor.range);
    if (compression_.places_travel()) {
      sparse_code::add(code, own);
      continue;
    }
    places_.resize(static_cast<std::size_t>(tensor.count));
    draw(tensor, step);
    auto const* number = code.data();
    for (auto const place : places_) {
      float value = 0;
      std::memcpy(&value, number, sizeof(value));
      number += sizeof(value);
      own[place] += value;
    }
  }
}

}  // namespace stratagem
