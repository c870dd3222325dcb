#include "strategy/fsdp/coded_gather.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "comm/communicator.hpp"
#include "strategy/codes/compressed.hpp"

namespace stratagem {

CodedGather::CodedGather(FsdpPlan const& plan, gpu::Device const& device)
    : plan_(plan), codec_(plan.parameter_compression, Rounding::nearest, 0) {
  refuse_codes_on_gpu(device);
}

at::Tensor CodedGather::codes_in(Chunk const& chunk, at::Tensor const& whole) const {
  auto const bytes = whole.view(at::kByte);
  auto const room = plan_.shards.ranks * plan_.gathered_shard_bytes(chunk);
  return bytes.narrow(0, bytes.numel() - room, room);
}

void CodedGather::write(at::Tensor const& shard, at::Tensor const& code) const {
  codec_.encode(numbers_of(shard), {data_of(code), static_cast<std::size_t>(code.numel())}, {});
}

/// From the front. No code of a block is longer than its numbers, so what is written never reaches
/// codes beyond the piece that is read.
void CodedGather::read(Chunk const& chunk, at::Tensor const& whole) const {
  constexpr std::int64_t piece = 2048;  // elements
  std::array<std::byte, piece * sizeof(float)> code;
  std::array<float, piece> rounded;
  auto const codes = codes_in(chunk, whole);
  expects(codec_.wire_bytes(block_elements) <= block_elements * whole.element_size(),
          "a code that is no longer than what is read of it");
  for (std::int64_t begin = 0; begin < whole.numel(); begin += piece) {
    auto const count = std::min(piece, whole.numel() - begin);
    std::span const wire(code.data(), static_cast<std::size_t>(codec_.wire_bytes(count)));
    std::memcpy(wire.data(), data_of(codes) + codec_.wire_bytes(begin), wire.size());
    auto const part = whole.narrow(0, begin, count);
    if (whole.scalar_type() == at::kFloat) {
      codec_.decode(wire, numbers_of(part));
    } else {
      codec_.decode(wire, {rounded.data(), static_cast<std::size_t>(count)});
      part.copy_(at::from_blob(rounded.data(), {count}, at::kFloat));
    }
  }
}

}  // namespace stratagem
