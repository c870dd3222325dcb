#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "comm/work/operation.hpp"

namespace stratagem {

/// Delays another operation after its turn has come. Late communication reveals code that does not
/// wait for it.
class DelayedOperation final : public Operation {
 public:
  DelayedOperation(std::unique_ptr<Operation> inner, std::chrono::nanoseconds delay)
      : inner_(std::move(inner)), delay_(delay) {}

  std::string_view name() const override { return inner_->name(); }
  bool collective() const override { return inner_->collective(); }
  State advance() override;
  std::int64_t in_flight() const override { return inner_->in_flight(); }

 private:
  std::unique_ptr<Operation> inner_;
  std::chrono::nanoseconds delay_;
  std::int64_t begin_ns_ = 0;  ///< when its turn came; 0 before
};

}  // namespace stratagem
