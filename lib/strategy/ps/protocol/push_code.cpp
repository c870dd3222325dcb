#include "strategy/ps/protocol/push_code.hpp"

#include <ATen/ATen.h>

#include "comm/communicator.hpp"
#include "strategy/codes/compressed.hpp"

namespace stratagem {
namespace {

Codec::Draw draw_of(Batch const& batch, std::int64_t first) {
  return {batch.step, static_cast<int>(batch.first_slot / batch.size()), first};
}

std::span<std::byte> bytes_in(at::Tensor const& code) {
  return {data_of(code), static_cast<std::size_t>(code.numel())};
}

at::Tensor part_of(at::Tensor const& flat, FlatRange range) {
  return flat.defined() ? flat.narrow(0, range.begin, range.size()) : flat;
}

}  // namespace

PushCode::PushCode(Compression const& compression, ParameterLayout const& layout,
                   std::uint64_t seed)
    : layout_(layout),
      codec_(compression.code, compression.rounding, seed),
      feedback_(compression.error_feedback) {}

at::Tensor PushCode::make_residual() const {
  return feedback_ ? at::zeros({layout_.size()}, at::kFloat) : at::Tensor();
}

at::Tensor PushCode::part(at::Tensor const& codes, FlatRange range) const {
  return codes.narrow(0, bytes(range.begin), bytes(range.size()));
}

void PushCode::encode(at::Tensor const& gradients, at::Tensor const& residual, FlatRange range,
                      Batch const& batch, at::Tensor const& code) const {
  auto const lost = numbers_of(part_of(residual, range));
  codec_.encode(numbers_of(part_of(gradients, range)), lost, bytes_in(code),
                draw_of(batch, range.begin));
  clear_padding(layout_, range, lost);
}

void PushCode::decode(at::Tensor const& code, FlatRange range, at::Tensor const& values) const {
  codec_.decode(bytes_in(code), numbers_of(values));
  clear_padding(layout_, range, numbers_of(values));
}

void PushCode::pass_through(at::Tensor const& gradients, at::Tensor const& residual,
                            Batch const& batch) const {
  codec_.pass_through(numbers_of(gradients), numbers_of(residual), draw_of(batch, 0));
  for (auto const& tensor : {gradients, residual})
    clear_padding(layout_, {0, layout_.size()}, numbers_of(tensor));
}

std::optional<PushCode> make_push_code(Compression const& compression,
                                       ParameterLayout const& layout, std::uint64_t seed) {
  if (!compression.on()) return std::nullopt;
  return std::make_optional<PushCode>(compression, layout, seed);
}

}  // namespace stratagem
