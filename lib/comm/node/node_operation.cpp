#include "comm/node/node_operation.hpp"

#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/communicator.hpp"

namespace stratagem {

NodeOperation::NodeOperation(NodeGroup const& group, Kind kind, at::Tensor input, at::Tensor output,
                             std::uint64_t number)
    : group_(group),
      kind_(kind),
      input_(std::move(input)),
      output_(std::move(output)),
      number_(number) {}

/// Who waits for the others moves nothing for them.
std::int64_t NodeOperation::in_flight() const {
  return stage_ == Stage::moving ? bytes_of(input_) : 0;
}

Operation::State NodeOperation::advance() {
  switch (stage_) {
    case Stage::idle:
      return start();
    case Stage::told:
      if (!all_told()) return State::stuck;
      stage_ = Stage::moving;
      return State::moved;
    case Stage::moving: {
      auto const state = move();
      if (state != State::finished) return state;
      mark(group_.rank()).served.store(number_, std::memory_order_release);
      stage_ = Stage::served;
      return State::moved;
    }
    case Stage::served:
      return all_served() ? finish() : State::stuck;
  }
  return State::stuck;
}

/// The collective that had this rank's mark before must be over here: then all have read the mark.
Operation::State NodeOperation::start() {
  if (mark(group_.rank()).over != (number_ > NodeGroup::marks ? number_ - NodeGroup::marks : 0))
    return State::stuck;
  if (input_.numel() == 0) return finish();
  tell();
  stage_ = Stage::told;
  return State::moved;
}

Operation::State NodeOperation::finish() {
  if (stage_ == Stage::served) end();
  mark(group_.rank()).over = number_;
  return State::finished;
}

void NodeOperation::tell() {
  auto& own = mark(group_.rank());
  own.kind = static_cast<std::int32_t>(kind_);
  own.type = static_cast<std::int32_t>(input_.scalar_type());
  own.numel = input_.numel();
  own.place = place().value_or(-1);
  own.published.store(0, std::memory_order_relaxed);
  own.told.store(number_, std::memory_order_release);
}

bool NodeOperation::all_told() const {
  auto const& own = mark(group_.rank());
  for (int rank = 0; rank < group_.size(); ++rank) {
    auto const& other = mark(rank);
    if (other.told.load(std::memory_order_acquire) != number_) return false;
    if (other.kind != own.kind || other.type != own.type || other.numel != own.numel)
      throw Error(ExitCode::mismatch, str(name(), " was given up"),
                  str("rank ", rank, " of this node called another operation"));
  }
  return true;
}

bool NodeOperation::all_in_arena() const {
  for (int rank = 0; rank < group_.size(); ++rank)
    if (mark(rank).place < 0) return false;
  return true;
}

bool NodeOperation::all_served() const {
  for (int rank = 0; rank < group_.size(); ++rank)
    if (mark(rank).served.load(std::memory_order_acquire) < number_) return false;
  return true;
}

void NodeOperation::publish(std::int64_t pieces) {
  mark(group_.rank()).published.store(pieces, std::memory_order_release);
}

std::int64_t NodeOperation::published(int rank) const {
  return mark(rank).published.load(std::memory_order_acquire);
}

}  // namespace stratagem
