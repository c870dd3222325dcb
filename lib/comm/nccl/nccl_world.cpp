#include "comm/nccl/nccl_world.hpp"

#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include <ATen/ATen.h>

#include "base/clock.hpp"
#include "base/contract.hpp"
#include "base/text.hpp"
#include "comm/mpi/mpi_world.hpp"
#include "comm/nccl/session.hpp"
#include "comm/serial/serial_communicator.hpp"
#include "gpu/stream.hpp"

namespace stratagem {
namespace {

ncclDataType_t native(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return ncclFloat32;
    case at::kDouble:
      return ncclFloat64;
    case at::kHalf:
      return ncclFloat16;
    case at::kBFloat16:
      return ncclBfloat16;
    case at::kLong:
      return ncclInt64;
    case at::kInt:
      return ncclInt32;
    case at::kByte:
      return ncclUint8;
    default:
      expects(false, "a type that NCCL moves");
  }
  return ncclUint8;
}

std::size_t count(at::Tensor const& tensor) {
  return static_cast<std::size_t>(tensor.numel());
}

class NcclWork final : public WorkState {
 public:
  NcclWork(std::shared_ptr<NcclSession> session, gpu::Device const& device, gpu::Event finished,
           char const* name, std::vector<at::Tensor> tensors, trace::HeartbeatStatus* heartbeat)
      : session_(std::move(session)),
        device_(device),
        finished_(std::move(finished)),
        name_(name),
        tensors_(std::move(tensors)),
        heartbeat_(heartbeat) {}

  bool done() const override { return finished_.done(); }
  void wait_on_stream() override {
    session_->check(name_);
    finished_.wait_on_stream(gpu::Stream::compute(device_));
  }
  void wait_on_host() override {
    trace::HeartbeatStatus::Wait const sign(heartbeat_, name_);
    auto const deadline = monotonic_ns() + session_->timeout().count();
    while (!finished_.done()) {
      session_->check(name_);
      if (monotonic_ns() > deadline) session_->give_up(name_);
      std::this_thread::yield();
    }
    session_->check(name_);
  }

 private:
  std::shared_ptr<NcclSession> session_;
  gpu::Device device_;
  gpu::Event finished_;
  char const* name_;
  std::vector<at::Tensor> tensors_;
  trace::HeartbeatStatus* heartbeat_;
};

/// Spans of sampled operations, recorded when their completion is noticed.
class SpanQueue {
 public:
  explicit SpanQueue(trace::Recorder* recorder) : recorder_(recorder) {}

  void add(std::string_view name, std::int64_t bytes, gpu::Event const& finished) {
    if (recorder_ == nullptr) return;
    drain();
    auto const step = recorder_->sampled_step();
    if (step < 0) return;
    under_way_.push_back({finished,
                          {.name = recorder_->intern(name),
                           .lane = trace::Lane::comm,
                           .t_begin = monotonic_ns(),
                           .step = step,
                           .bytes = bytes}});
  }

 private:
  struct Entry {
    gpu::Event finished;
    trace::SpanRecord span;
  };

  void drain() {
    for (; !under_way_.empty() && under_way_.front().finished.done(); under_way_.pop_front()) {
      under_way_.front().span.t_end = monotonic_ns();
      recorder_->record(under_way_.front().span);
    }
  }

  trace::Recorder* recorder_;
  std::deque<Entry> under_way_;
};

class NcclCommunicator final : public Communicator {
 public:
  /// The ranks of `session` are those of `messages`, which outlives it.
  NcclCommunicator(Communicator& messages, std::shared_ptr<NcclSession> session,
                   gpu::Device const& device, trace::Recorder* recorder)
      : messages_(messages),
        session_(std::move(session)),
        device_(device),
        stream_(gpu::Stream::high_priority(device)),
        barrier_word_(device, sizeof(float)),
        spans_(recorder),
        heartbeat_(recorder != nullptr ? &recorder->heartbeat() : nullptr) {}

  int rank() const override { return messages_.rank(); }
  int size() const override { return messages_.size(); }
  std::string_view backend() const override { return "nccl"; }
  at::Tensor allocate(std::int64_t numel, at::ScalarType type) override {
    return at::zeros({numel}, at::TensorOptions().dtype(type).device(device_.torch()));
  }

  Work send(at::Tensor const& tensor, int peer, int tag) override {
    return messages_.send(tensor, peer, tag);
  }
  Work receive(at::Tensor const& tensor, int peer, int tag) override {
    return messages_.receive(tensor, peer, tag);
  }

  std::int64_t bytes_sent() const override { return bytes_sent_ + messages_.bytes_sent(); }
  void repeat(Kept const& kept) override {
    session_->check("a graph");
    Communicator::repeat(kept);
    bytes_sent_ += kept.bytes_sent;
  }

 private:
  Work start_all_reduce(at::Tensor const& tensor) override {
    auto const bytes = 2 * bytes_of(tensor) * (size() - 1) / size();
    return run("all_reduce", {tensor}, bytes, [&] {
      return ncclAllReduce(tensor.data_ptr(), tensor.data_ptr(), count(tensor),
                           native(tensor.scalar_type()), ncclSum, session_->handle(), stream());
    });
  }

  Work start_reduce_scatter(at::Tensor const& output, at::Tensor const& input) override {
    expects(input.numel() == output.numel() * size(), "input is N times as large as output");
    return run("reduce_scatter", {output, input}, bytes_of(output) * (size() - 1), [&] {
      return ncclReduceScatter(input.data_ptr(), output.data_ptr(), count(output),
                               native(input.scalar_type()), ncclSum, session_->handle(), stream());
    });
  }

  Work start_all_gather(at::Tensor const& output, at::Tensor const& input) override {
    expects(output.numel() == input.numel() * size(), "output is N times as large as input");
    return run("all_gather", {output, input}, bytes_of(input) * (size() - 1), [&] {
      return ncclAllGather(input.data_ptr(), output.data_ptr(), count(input),
                           native(input.scalar_type()), session_->handle(), stream());
    });
  }

  Work start_broadcast(at::Tensor const& tensor, int root) override {
    auto const bytes = rank() == root ? bytes_of(tensor) * (size() - 1) : 0;
    return run("broadcast", {tensor}, bytes, [&] {
      return ncclBroadcast(tensor.data_ptr(), tensor.data_ptr(), count(tensor),
                           native(tensor.scalar_type()), root, session_->handle(), stream());
    });
  }

  Work start_barrier() override {
    return run("barrier", {}, 0, [&] {
      return ncclAllReduce(barrier_word_.data(), barrier_word_.data(), 1, ncclFloat32, ncclSum,
                           session_->handle(), stream());
    });
  }

  cudaStream_t stream() const { return static_cast<cudaStream_t>(stream_.native()); }

  /// Submits what `call` enqueues to the communicator's stream, after all work that the compute
  /// stream has so far.
  template <class Call>
  Work run(char const* name, std::vector<at::Tensor> tensors, std::int64_t bytes, Call call) {
    for (auto const& tensor : tensors) expects(tensor.is_contiguous(), "a contiguous tensor");
    if (!tensors.empty() && tensors.front().numel() == 0) return {};
    session_->check(name);
    gpu::Event made(device_), finished(device_);
    made.record(gpu::Stream::compute(device_));
    made.wait_on_stream(stream_);
    session_->submitted(call(), name);
    finished.record(stream_);
    bytes_sent_ += bytes;
    spans_.add(name, bytes, finished);
    return Work(std::make_shared<NcclWork>(session_, device_, finished, name, std::move(tensors),
                                           heartbeat_));
  }

  Communicator& messages_;
  std::shared_ptr<NcclSession> session_;
  gpu::Device device_;
  gpu::Stream stream_;
  gpu::PinnedBuffer barrier_word_;  ///< the device reaches pinned memory; never read
  SpanQueue spans_;
  trace::HeartbeatStatus* heartbeat_;
  std::int64_t bytes_sent_ = 0;
};

class NcclWorld final : public World {
 public:
  NcclWorld(mpi::Comm const& comm, gpu::Device const& device, trace::Recorder* recorder,
            std::chrono::nanoseconds timeout, std::unique_ptr<PeriodicTask> periodic_task)
      : device_(device),
        recorder_(recorder),
        timeout_(timeout),
        session_(std::make_shared<NcclSession>(comm, device, timeout)),
        messages_(comm, device, nullptr, timeout, {}, std::move(periodic_task)),
        all_(messages_.all(), session_, device, recorder) {}

  Communicator& all() override { return all_; }

 private:
  std::vector<std::string> gather(std::string const& text) override {
    return messages_.gather(text);
  }
  std::unique_ptr<Communicator> open(std::string const& name,
                                     std::vector<int> const& ranks) override {
    std::shared_ptr<NcclSession> session;
    messages_.call([&](mpi::Comm const& all) {
      auto const group = all.split(ranks.front());
      if (group.size() > 1) session = std::make_shared<NcclSession>(group, device_, timeout_);
    });
    auto& messages = messages_.group(name, ranks);
    if (!session) return std::make_unique<SerialCommunicator>(device_);
    return std::make_unique<NcclCommunicator>(messages, std::move(session), device_, recorder_);
  }

  gpu::Device device_;
  trace::Recorder* recorder_;
  std::chrono::nanoseconds timeout_;
  std::shared_ptr<NcclSession> session_;  ///< of all ranks, before the progress thread begins
  MpiWorld messages_;
  NcclCommunicator all_;
};

}  // namespace

std::unique_ptr<World> make_nccl_world(mpi::Comm const& comm, gpu::Device const& device,
                                       trace::Recorder* recorder, std::chrono::nanoseconds timeout,
                                       std::unique_ptr<PeriodicTask> periodic_task) {
  return std::make_unique<NcclWorld>(comm, device, recorder, timeout, std::move(periodic_task));
}

}  // namespace stratagem
