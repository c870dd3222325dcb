#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "comm/mpi/staging.hpp"
#include "comm/work/progress.hpp"
#include "gpu/device.hpp"
#include "trace/recorder.hpp"

namespace stratagem {

/// Hands the operations of all groups to the progress thread: with host copies of a device's
/// tensors, and delayed where tests ask for it. Must outlive the operations.
class Submission {
 public:
  enum class Name {
    all_reduce,
    reduce_scatter,
    all_gather,
    broadcast,
    barrier,
    send,
    receive,
    rma,
    open_group
  };
  /// An operation, and the bytes that it sends.
  using Made = std::pair<std::unique_ptr<Operation>, std::int64_t>;
  using Make = std::function<Made(std::vector<at::Tensor> const&)>;

  /// `progress` may be constructed later. `recorder` may be null. Each operation is delayed by a
  /// random time up to `delay`, another on every `rank`.
  Submission(Progress& progress, gpu::Device const& device, trace::Recorder* recorder, int rank,
             std::chrono::nanoseconds delay);

  /// Makes an operation with host copies of `arguments`, and submits it; adds what it sends to
  /// `bytes_sent`. `peer`: of the span; -1: none.
  Work run(Name name, std::vector<Argument> arguments, int peer, std::size_t queue,
           std::int64_t& bytes_sent, Make const& make);
  /// An operation that is made already, and the bytes that it sends.
  Work submit(Name name, Made made, int peer, std::size_t queue);
  Staging& staging() { return staging_; }

 private:
  Progress& progress_;
  Staging staging_;
  std::vector<trace::NameId> names_;  ///< of spans, by Name
  std::chrono::nanoseconds delay_;
  CounterRandom random_;  ///< for delays
  std::uint64_t submitted_ = 0;
};

}  // namespace stratagem
