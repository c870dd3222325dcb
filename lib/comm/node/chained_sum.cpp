#include "comm/node/chained_sum.hpp"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

#include "base/arithmetic.hpp"
#include "comm/communicator.hpp"
#include "comm/reduction.hpp"

namespace stratagem {

ChainedSum::ChainedSum(mpi::Comm const& comm, NodeGroup const& group, Kind kind, at::Tensor input,
                       at::Tensor output, std::uint64_t number, int tag)
    : NodeOperation(group, kind, std::move(input), std::move(output), number),
      comm_(comm),
      shared_(group.room_for(this->input())),
      nodes_(comm.size() / group.size()),
      node_(comm.rank() / group.size()),
      tag_(tag),
      sliced_(slices_of(kind, shared_, this->output(),
                        kind == Kind::all_reduce ? group.size() : comm.size())),
      sum_size_(static_cast<std::int64_t>(at::elementSize(sum_type(shared_.scalar_type())))),
      piece_(piece_bytes / sum_size_),
      pieces_of_slice_(ceil_div(sliced_.slice, piece_)),
      pieces_(kind == Kind::all_reduce ? pieces_of_slice_ : nodes_ * pieces_of_slice_),
      ring_(
          static_cast<std::size_t>(std::min<std::int64_t>(2 * nodes_ + waiting_pieces, pieces_))) {}

std::optional<std::int64_t> ChainedSum::place() {
  if (shared_.data_ptr() != input().data_ptr())
    std::copy_n(data_of(input()), bytes_of(input()), data_of(shared_));
  return group().place_of(shared_.data_ptr());
}

void ChainedSum::end() {
  if (kind() == Kind::all_reduce && shared_.data_ptr() != input().data_ptr())
    std::copy_n(data_of(shared_), bytes_of(shared_), data_of(output()));
}

Operation::State ChainedSum::move() {
  bool moved = false;
  if (begun_ < pieces_ && begun_ - ended_ < static_cast<std::int64_t>(ring_.size())) {
    begin(begun_++);
    moved = true;
  }
  auto limit = Stage::ended;
  for (auto number = ended_; number < begun_; ++number) {
    auto& next = piece(number);
    if (next.stage < limit && mpi::test_all(next.requests)) {
      next.requests.clear();
      go_on(next);
      moved = true;
    }
    limit = next.stage;
  }
  while (ended_ < begun_ && piece(ended_).stage == Stage::ended) ++ended_;
  if (ended_ == pieces_) return State::finished;
  return moved ? State::moved : State::stuck;
}

void ChainedSum::begin(std::int64_t number) {
  auto& begun = piece(number);
  begun.number = number;
  begun.stage = Stage::receiving;
  // Where sizes differ, Open MPI 4.1 writes a message that is too long as a whole before it says
  // so: there is room for the longest.
  if (!begun.sums) begun.sums = std::make_unique_for_overwrite<std::byte[]>(piece_bytes);
  if (node_ > 0) begun.requests.push_back(comm_.receive(sums_of(begun), rank_on(node_ - 1), tag_));
}

void ChainedSum::go_on(Piece& piece) {
  bool const last = node_ == nodes_ - 1;
  switch (piece.stage) {
    case Stage::receiving:
      add_own(piece);
      if (last)
        round_sums(piece.sums.get(), count(piece), shared_.scalar_type());
      else
        piece.requests.push_back(comm_.send(sums_of(piece), rank_on(node_ + 1), tag_));
      piece.stage = Stage::passing_on;
      return;
    case Stage::passing_on:
      if (auto const sender = sender_of_total(piece))
        piece.requests.push_back(comm_.receive(values_of(piece), rank_on(*sender), tag_ + 1));
      piece.stage = Stage::awaiting;
      return;
    case Stage::awaiting:
      deliver(piece);
      if (auto const receiver = receiver_of_total(piece))
        piece.requests.push_back(comm_.send(values_of(piece), rank_on(*receiver), tag_ + 1));
      piece.stage = Stage::handing_back;
      return;
    case Stage::handing_back:
    case Stage::ended:
      piece.stage = Stage::ended;
  }
}

void ChainedSum::add_own(Piece& piece) {
  auto const offset = part(piece).data() - sliced_.data;
  std::vector<std::byte const*> sources;
  for (int rank = 0; rank < group().size(); ++rank) sources.push_back(tensor_of(rank) + offset);
  add_in_order(sources, piece.sums.get(), node_ > 0, count(piece), shared_.scalar_type());
}

void ChainedSum::deliver(Piece const& piece) {
  auto const values = values_of(piece), own = part(piece);
  if (kind() == Kind::all_reduce) {
    for (int rank = 0; rank < group().size(); ++rank)
      std::ranges::copy(values, tensor_of(rank) + (own.data() - sliced_.data));
  } else if (owner(piece) == node_) {
    auto const begin = piece.number % pieces_of_slice_ * piece_;
    std::ranges::copy(values, data_of(output()) + begin * sliced_.element_size);
  }
}

std::span<std::byte> ChainedSum::part(Piece const& piece) const {
  auto const slice = kind() == Kind::all_reduce ? group().rank() : rank_on(owner(piece));
  return sliced_.part(slice, piece.number % pieces_of_slice_ * piece_, piece_);
}

std::int64_t ChainedSum::count(Piece const& piece) const {
  return static_cast<std::int64_t>(part(piece).size()) / sliced_.element_size;
}

std::span<std::byte> ChainedSum::sums_of(Piece const& piece) const {
  return {piece.sums.get(), static_cast<std::size_t>(count(piece) * sum_size_)};
}

std::span<std::byte> ChainedSum::values_of(Piece const& piece) const {
  return {piece.sums.get(), part(piece).size()};
}

int ChainedSum::owner(Piece const& piece) const {
  return static_cast<int>(piece.number / pieces_of_slice_);
}

std::optional<int> ChainedSum::sender_of_total(Piece const& piece) const {
  if (node_ == nodes_ - 1) return std::nullopt;
  if (kind() == Kind::all_reduce) return node_ + 1;
  return owner(piece) == node_ ? std::optional(nodes_ - 1) : std::nullopt;
}

std::optional<int> ChainedSum::receiver_of_total(Piece const& piece) const {
  if (kind() == Kind::all_reduce) return node_ > 0 ? std::optional(node_ - 1) : std::nullopt;
  bool const away = node_ == nodes_ - 1 && owner(piece) != node_;
  return away ? std::optional(owner(piece)) : std::nullopt;
}

}  // namespace stratagem
