#include "comm/node/node_collective.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/communicator.hpp"
#include "comm/reduction.hpp"

namespace stratagem {
namespace {

std::byte* data_of(at::Tensor const& tensor) {
  return static_cast<std::byte*>(tensor.data_ptr());
}

}  // namespace

NodeCollective::NodeCollective(NodeArena const& arena, Kind kind, at::Tensor input,
                               at::Tensor output, std::uint64_t number,
                               std::unique_ptr<Operation> messages)
    : arena_(arena),
      kind_(kind),
      input_(std::move(input)),
      output_(std::move(output)),
      number_(number),
      messages_(std::move(messages)),
      sliced_(slices_of(kind, input_, output_, arena.size())) {}

NodeMark& NodeCollective::mark(int rank) const {
  return reinterpret_cast<NodeMark*>(arena_.at(rank, 0))[number_ % marks];
}

std::int64_t NodeCollective::in_flight() const {
  return stage_ == Stage::by_messages ? messages_->in_flight() : bytes_of(input_);
}

Operation::State NodeCollective::advance() {
  switch (stage_) {
    case Stage::idle:
      return start();
    case Stage::told:
      return all_told() ? go_on_together() : State::stuck;
    case Stage::by_messages: {
      auto const state = messages_->advance();
      return state == State::finished ? finish() : state;
    }
    case Stage::moving:
      if (next_ < sliced_.slice) move_piece();
      if (next_ < sliced_.slice) return State::moved;
      mark(arena_.rank()).served.store(number_, std::memory_order_release);
      stage_ = Stage::served;
      return State::moved;
    case Stage::served:
      return all_served() ? finish() : State::stuck;
  }
  return State::stuck;
}

/// The collective that had this rank's mark before must be over here: then all have read the mark.
Operation::State NodeCollective::start() {
  if (mark(arena_.rank()).over != (number_ > marks ? number_ - marks : 0)) return State::stuck;
  if (sliced_.numel == 0) return finish();
  tell();
  stage_ = Stage::told;
  return State::moved;
}

Operation::State NodeCollective::go_on_together() {
  stage_ = Stage::moving;
  for (int rank = 0; rank < arena_.size(); ++rank)
    if (mark(rank).place < 0) stage_ = Stage::by_messages;
  return State::moved;
}

Operation::State NodeCollective::finish() {
  mark(arena_.rank()).over = number_;
  return State::finished;
}

std::optional<std::int64_t> NodeCollective::published_place() {
  auto const place = arena_.place_of(input_.data_ptr());
  if (place || kind_ != Kind::all_gather) return place;
  auto* const part = sliced_.part(arena_.rank(), 0, sliced_.slice).data();
  auto const gathered = arena_.place_of(part);
  if (gathered) std::copy_n(data_of(input_), bytes_of(input_), part);
  return gathered;
}

void NodeCollective::tell() {
  auto& own = mark(arena_.rank());
  own.kind = static_cast<std::int32_t>(kind_);
  own.type = static_cast<std::int32_t>(input_.scalar_type());
  own.numel = input_.numel();
  own.place = published_place().value_or(-1);
  own.told.store(number_, std::memory_order_release);
}

bool NodeCollective::all_told() const {
  auto const& own = mark(arena_.rank());
  for (int rank = 0; rank < arena_.size(); ++rank) {
    auto const& other = mark(rank);
    if (other.told.load(std::memory_order_acquire) != number_) return false;
    if (other.kind != own.kind || other.type != own.type || other.numel != own.numel)
      throw Error(ExitCode::mismatch, str(name(), " was given up"),
                  str("rank ", rank, " called another operation"));
  }
  return true;
}

bool NodeCollective::all_served() const {
  for (int rank = 0; rank < arena_.size(); ++rank)
    if (mark(rank).served.load(std::memory_order_acquire) < number_) return false;
  return true;
}

void NodeCollective::move_piece() {
  auto const count = std::max<std::int64_t>(piece_bytes / sliced_.element_size, 1);
  auto const begin = std::exchange(next_, next_ + count);
  if (kind_ == Kind::all_gather)
    gather_piece(begin, count);
  else
    sum_piece(begin, count);
}

/// The piece of this rank's slice: read from all, in rank order, and written to this rank, or to
/// all.
void NodeCollective::sum_piece(std::int64_t begin, std::int64_t count) {
  auto const own = sliced_.part(arena_.rank(), begin, count);
  if (own.empty()) return;
  auto const offset = own.data() - sliced_.data;
  std::vector<std::byte const*> versions;
  for (int rank = 0; rank < arena_.size(); ++rank)
    versions.push_back(arena_.at(rank, mark(rank).place) + offset);
  auto* const sum =
      kind_ == Kind::all_reduce ? own.data() : data_of(output_) + begin * sliced_.element_size;
  sum_in_order(versions, sum, static_cast<std::int64_t>(own.size()) / sliced_.element_size,
               input_.scalar_type());
  if (kind_ != Kind::all_reduce) return;
  for (int rank = 0; rank < arena_.size(); ++rank)
    if (rank != arena_.rank()) std::ranges::copy(own, arena_.at(rank, mark(rank).place) + offset);
}

void NodeCollective::gather_piece(std::int64_t begin, std::int64_t count) {
  for (int rank = 0; rank < arena_.size(); ++rank) {
    auto const part = sliced_.part(rank, begin, count);
    auto const* const from = arena_.at(rank, mark(rank).place) + begin * sliced_.element_size;
    if (from != part.data()) std::copy_n(from, part.size(), part.data());
  }
}

}  // namespace stratagem
