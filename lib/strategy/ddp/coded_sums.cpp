#include "strategy/ddp/coded_sums.hpp"

#include <algorithm>
#include <iterator>

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "base/error.hpp"
#include "strategy/codes/compressed.hpp"

namespace stratagem {
namespace {

/// Of messages: the codes of a piece's slices, and of their sums.
int tag_of(std::size_t piece) {
  auto const tag = 2 * static_cast<int>(piece);
  expects(tag < Communicator::max_tag, "fewer pieces than tags");
  return tag;
}

}  // namespace

CodedSums::CodedSums(std::vector<CodedPiece> pieces, Compression const& compression,
                     StrategyParts const& parts, ParameterLayout const& layout, Communicator& group)
    : pieces_(std::move(pieces)),
      group_(group),
      layout_(layout),
      codec_(compression.code, compression.rounding, parts.seed),
      exchanges_(pieces_.size()) {
  std::int64_t bytes = 0, elements = 0;
  for (auto const& piece : pieces_) {
    first_byte_.push_back(bytes);
    first_of_sums_.push_back(elements);
    bytes += ranks() * piece.wire;
    elements += piece.slice;
  }
  gpu::MemoryScope const scope(gpu::MemoryCategory::gradients, parts.device);
  for (auto* const codes : {&sending_, &receiving_, &summed_})
    *codes = group_.allocate(bytes, at::kByte);
  if (!compression.error_feedback) return;
  residual_ = at::zeros({layout.size()}, at::kFloat);
  residual_of_sum_ = at::zeros({elements}, at::kFloat);
}

void CodedSums::begin(std::size_t bucket, at::Tensor const& gradients, std::int64_t step) {
  gradients_ = gradients;
  step_ = step;
  for (std::size_t piece = 0; piece < pieces_.size(); ++piece)
    if (pieces_[piece].bucket == bucket) begin_piece(piece);
}

void CodedSums::begin_piece(std::size_t piece) {
  auto& exchange = exchanges_[piece];
  exchange.stage = Stage::exchanging;
  auto const tag = tag_of(piece);
  for (int peer = 0; peer < ranks(); ++peer) {
    auto const range = pieces_[piece].slice_of(peer);
    auto const lost =
        residual_.defined() ? residual_.narrow(0, range.begin, range.size()) : at::Tensor();
    encode(piece, peer, lost, rank(), code(sending_, piece, peer, peer));
    if (peer == rank()) continue;
    exchange.arriving.push_back(group_.receive(room(receiving_, piece, peer), peer, tag));
    exchange.returning.push_back(group_.receive(room(summed_, piece, peer), peer, tag + 1));
    exchange.sent.push_back(group_.send(room(sending_, piece, peer), peer, tag));
  }
}

void CodedSums::advance() {
  for (std::size_t piece = 0; piece < pieces_.size(); ++piece)
    if (exchanges_[piece].stage == Stage::exchanging && arrived(exchanges_[piece])) add_up(piece);
}

bool CodedSums::arrived(Exchange const& exchange) const {
  return std::ranges::all_of(exchange.arriving, &Work::done);
}

void CodedSums::add_up(std::size_t piece) {
  auto& exchange = exchanges_[piece];
  for (auto& work : exchange.arriving) work.wait_on_host();
  auto const sum = values(piece, rank());
  for (int from = 0; from < ranks(); ++from) {
    auto const version = code(from == rank() ? sending_ : receiving_, piece, from, rank());
    if (from == 0)
      codec_.decode(version, sum);
    else
      codec_.decode_and_add(version, sum);
  }
  clear_padding(piece, rank(), sum);
  encode(piece, rank(), own_residual(piece), ranks(), code(summed_, piece, rank(), rank()));
  for (int peer = 0; peer < ranks(); ++peer)
    if (peer != rank())
      exchange.sent.push_back(group_.send(room(summed_, piece, rank()), peer, tag_of(piece) + 1));
  exchange.stage = Stage::returning;
}

void CodedSums::finish(std::size_t bucket) {
  for (std::size_t piece = 0; piece < pieces_.size(); ++piece)
    if (exchanges_[piece].stage == Stage::exchanging) add_up(piece);
  for (std::size_t piece = 0; piece < pieces_.size(); ++piece)
    if (pieces_[piece].bucket == bucket) finish_piece(piece);
}

void CodedSums::finish_piece(std::size_t piece) {
  auto& exchange = exchanges_[piece];
  for (auto* const works : {&exchange.returning, &exchange.sent})
    for (auto& work : *works) work.wait_on_host();
  for (int from = 0; from < ranks(); ++from) {
    codec_.decode(code(summed_, piece, from, from), values(piece, from));
    clear_padding(piece, from, values(piece, from));
  }
  exchange = {};
}

void CodedSums::encode(std::size_t piece, int owner, at::Tensor const& residual, int stage,
                       std::span<std::byte> code) {
  auto const lost = numbers_of(residual);
  codec_.encode(values(piece, owner), lost, code,
                {step_, stage, pieces_[piece].slice_of(owner).begin});
  clear_padding(piece, owner, lost);
}

void CodedSums::clear_padding(std::size_t piece, int owner, std::span<float> values) const {
  stratagem::clear_padding(layout_, pieces_[piece].slice_of(owner), values);
}

at::Tensor CodedSums::room(at::Tensor const& of, std::size_t piece, int peer) const {
  auto const wire = pieces_[piece].wire;
  return of.narrow(0, first_byte_[piece] + peer * wire, wire);
}

std::span<std::byte> CodedSums::code(at::Tensor const& of, std::size_t piece, int peer,
                                     int owner) const {
  auto const numel = pieces_[piece].slice_of(owner).size();
  return {data_of(room(of, piece, peer)), static_cast<std::size_t>(codec_.wire_bytes(numel))};
}

std::span<float> CodedSums::values(std::size_t piece, int rank) const {
  auto const range = pieces_[piece].slice_of(rank);
  return numbers_of(gradients_.narrow(0, range.begin, range.size()));
}

at::Tensor CodedSums::own_residual(std::size_t piece) const {
  if (!residual_of_sum_.defined()) return {};
  return residual_of_sum_.narrow(0, first_of_sums_[piece], pieces_[piece].slice_of(rank()).size());
}

std::vector<ParameterState> CodedSums::state() const {
  if (!residual_.defined()) return {};
  ParameterState of_sum{.kind = std::string(Compression::residual_of_sum), .pieces = {}};
  for (std::size_t piece = 0; piece < pieces_.size(); ++piece)
    std::ranges::move(pieces_of(layout_, pieces_[piece].slice_of(rank()), own_residual(piece)),
                      std::back_inserter(of_sum.pieces));
  auto states = of_each_worker(Compression::residual, layout_, residual_, group_);
  states.push_back(std::move(of_sum));
  return states;
}

}  // namespace stratagem
