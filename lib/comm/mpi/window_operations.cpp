#include "comm/mpi/window_operations.hpp"

#include "comm/communicator.hpp"
#include "comm/mpi/parts.hpp"

namespace stratagem {
namespace {

std::vector<std::span<std::byte>> pieces_of(at::Tensor const& tensor) {
  return parts_of(
      {static_cast<std::byte*>(tensor.data_ptr()), static_cast<std::size_t>(bytes_of(tensor))},
      mpi::Comm::max_message);
}

}  // namespace

Operation::State OpenWindow::advance() {
  try {
    result_->window = std::make_unique<mpi::Window>(comm_, bytes_);
  } catch (Error const& failure) {
    result_->failure = failure;
  }
  return State::finished;
}

Operation::State CloseWindow::advance() {
  window_.reset();
  return State::finished;
}

Operation::State PutOperation::advance() {
  if (!told_) {
    auto offset = place_.offset;
    for (auto const piece : pieces_of(source_)) {
      window_.put(piece, place_.peer, offset);
      offset += piece.size();
    }
    window_.flush(place_.peer);
    told_ = comm_.send({}, place_.peer, place_.tag);
  }
  return told_->test() ? State::finished : State::moved;
}

Operation::State AwaitPut::advance() {
  if (!heard_) heard_ = comm_.receive({}, peer_, tag_);
  if (!heard_->test()) return State::stuck;
  window_.synchronise();
  return State::finished;
}

Operation::State GetOperation::advance() {
  if (!heard_) heard_ = comm_.receive({}, place_.peer, place_.tag);
  if (!told_) {
    if (!heard_->test()) return State::stuck;
    auto offset = place_.offset;
    for (auto const piece : pieces_of(target_)) {
      window_.get(piece, place_.peer, offset);
      offset += piece.size();
    }
    window_.flush(place_.peer);
    told_ = comm_.send({}, place_.peer, place_.tag + 1);
  }
  return told_->test() ? State::finished : State::moved;
}

Operation::State OfferOperation::advance() {
  if (requests_.empty()) {
    window_.synchronise();
    requests_.push_back(comm_.receive({}, peer_, tag_ + 1));
    requests_.push_back(comm_.send({}, peer_, tag_));
  }
  return mpi::test_all(requests_) ? State::finished : State::stuck;
}

}  // namespace stratagem
