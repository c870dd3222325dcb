#include "comm/work/delayed_operation.hpp"

#include "base/clock.hpp"

namespace stratagem {

Operation::State DelayedOperation::advance() {
  auto const now = monotonic_ns();
  if (begin_ns_ == 0) begin_ns_ = now;
  return now - begin_ns_ < delay_.count() ? State::stuck : inner_->advance();
}

}  // namespace stratagem
