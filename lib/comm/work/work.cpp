#include "comm/work/work.hpp"

#include <exception>

namespace stratagem {

Work::~Work() {
  complete();
}

Work& Work::operator=(Work&& other) noexcept {
  if (this != &other) {
    complete();
    state_ = std::move(other.state_);
  }
  return *this;
}

void Work::wait_on_stream() {
  if (!state_) return;
  state_->wait_on_stream();
  state_.reset();
}

void Work::wait_on_host() {
  if (!state_) return;
  state_->wait_on_host();
  state_.reset();
}

void Work::complete() noexcept {
  // While an exception unwinds, a peer may be gone and never answer. The backend keeps the tensors
  // until the process ends, and nobody waits.
  if (!state_ || std::uncaught_exceptions() > 0) return;
  try {
    state_->wait_on_host();
  } catch (...) {
    // The next operation of the group reports it.
  }
  state_.reset();
}

}  // namespace stratagem
