#include "strategy/fsdp/coded_scatter.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "gpu/memory.hpp"
#include "strategy/codes/compressed.hpp"

namespace stratagem {

CodedScatter::CodedScatter(FsdpPlan const& plan, ParameterLayout const& layout,
                           StrategyParts const& parts, Communicator& group)
    : plan_(plan),
      layout_(layout),
      group_(group),
      codec_(plan.compression.code, plan.compression.rounding, parts.seed) {
  refuse_codes_on_gpu(parts.device);
  expects(2 * plan.units() < Communicator::max_tag, "fewer units than tags");
  if (!plan.compression.error_feedback) return;
  gpu::MemoryScope const scope(gpu::MemoryCategory::gradients, parts.device);
  residual_ = at::zeros({layout.size()}, at::kFloat);
}

at::Tensor CodedScatter::make_room(std::int64_t bytes) const {
  return group_.allocate(bytes, at::kByte).zero_();  // padding is never written
}

CodedScatter::Exchange CodedScatter::begin(int unit, std::size_t chunk, at::Tensor const& whole,
                                           at::Tensor const& room, std::int64_t step) {
  Exchange exchange;
  auto const tag = 2 * unit + static_cast<int>(chunk);
  for (int peer = 0; peer < ranks(); ++peer) {
    auto const code = sending(room, unit, chunk, peer);
    encode(chunk_of(unit, chunk), peer, whole, code, step);
    if (peer == rank()) continue;
    exchange.arriving.push_back(group_.receive(receiving(room, unit, chunk, peer), peer, tag));
    exchange.sent.push_back(group_.send(code, peer, tag));
  }
  return exchange;
}

void CodedScatter::encode(Chunk const& chunk, int owner, at::Tensor const& whole,
                          at::Tensor const& of_shard, std::int64_t step) {
  for (auto const& part : parts_of(chunk, owner)) {
    auto const numel = part.range.size();
    auto const lost = residual_.defined() ? numbers_of(residual_.narrow(0, part.first, numel))
                                          : std::span<float>();
    codec_.encode(numbers_of(whole.narrow(0, part.range.begin, numel)), lost,
                  code(of_shard, part, owner, chunk), {step, rank(), part.first});
    if (!lost.empty()) std::ranges::fill(lost.last(static_cast<std::size_t>(part.padding)), 0.0F);
  }
}

void CodedScatter::finish(Exchange exchange, int unit, std::size_t chunk, at::Tensor const& room,
                          at::Tensor const& shard) {
  for (auto& work : exchange.arriving) work.wait_on_host();
  auto const& whole = chunk_of(unit, chunk);
  auto const values = numbers_of(shard);
  std::ranges::fill(values, 0.0F);
  for (auto const& part : parts_of(whole, rank())) {
    auto const begin = static_cast<std::size_t>(part.range.begin - rank() * whole.shard);
    auto const sum = values.subspan(begin, static_cast<std::size_t>(part.range.size()));
    for (int from = 0; from < ranks(); ++from) {
      auto const version = code(
          from == rank() ? sending(room, unit, chunk, from) : receiving(room, unit, chunk, from),
          part, rank(), whole);
      if (from == 0)
        codec_.decode(version, sum);
      else
        codec_.decode_and_add(version, sum);
    }
    std::ranges::fill(sum.last(static_cast<std::size_t>(part.padding)), 0.0F);
  }
  for (auto& work : exchange.sent) work.wait_on_host();
}

std::vector<CodedScatter::Part> CodedScatter::parts_of(Chunk const& chunk, int owner) const {
  FlatRange const shard{owner * chunk.shard, (owner + 1) * chunk.shard};
  std::vector<Part> parts;
  for (auto const& place : chunk.places) {
    auto const& entry = layout_.entries()[place.entry];
    auto const end = place.offset + entry.spec.numel();
    auto const range = overlap({place.offset, ParameterLayout::aligned(end)}, shard);
    if (range.size() > 0)
      parts.push_back({range, entry.offset + range.begin - place.offset,
                       std::max<std::int64_t>(range.end - std::max(end, range.begin), 0)});
  }
  return parts;
}

at::Tensor CodedScatter::sending(at::Tensor const& room, int unit, std::size_t chunk,
                                 int peer) const {
  std::int64_t begin = 0;
  for (std::size_t before = 0; before < chunk; ++before)
    begin += 2 * ranks() * plan_.shard_code_bytes(chunk_of(unit, before));
  auto const bytes = plan_.shard_code_bytes(chunk_of(unit, chunk));
  return room.narrow(0, begin + peer * bytes, bytes);
}

at::Tensor CodedScatter::receiving(at::Tensor const& room, int unit, std::size_t chunk,
                                   int peer) const {
  return sending(room, unit, chunk, ranks() + peer);
}

std::span<std::byte> CodedScatter::code(at::Tensor const& of_shard, Part const& part, int owner,
                                        Chunk const& chunk) const {
  auto const first = codec_.wire_bytes(part.range.begin - owner * chunk.shard);
  return {data_of(of_shard) + first,
          static_cast<std::size_t>(codec_.wire_bytes(part.range.size()))};
}

std::vector<ParameterState> CodedScatter::state() const {
  if (!residual_.defined()) return {};
  return of_each_worker(Compression::residual, layout_, residual_, group_);
}

}  // namespace stratagem
