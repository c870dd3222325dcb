#include "comm/mpi/window_operations.hpp"

#include "comm/communicator.hpp"
#include "comm/mpi/parts.hpp"

namespace stratagem {
namespace {

/// Calls transfer(piece, offset) for pieces that one MPI call can move.
template <class Transfer>
void in_pieces(at::Tensor const& tensor, std::size_t offset, Transfer transfer) {
  auto const size = static_cast<std::size_t>(bytes_of(tensor));
  auto* const begin = static_cast<std::byte*>(tensor.data_ptr());
  for (auto const piece : parts_of({begin, size}, mpi::Comm::max_message)) {
    transfer(piece, offset);
    offset += piece.size();
  }
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
    in_pieces(source_, place_.offset, [this](std::span<std::byte> piece, std::size_t offset) {
      window_.put(piece, place_.peer, offset);
    });
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
    in_pieces(target_, place_.offset, [this](std::span<std::byte> piece, std::size_t offset) {
      window_.get(piece, place_.peer, offset);
    });
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
