#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include <ATen/core/Tensor.h>

#include "gpu/device.hpp"

namespace stratagem::gpu {

/// A queue of device work, in order. On the CPU all work is done when submitted.
class Stream {
 public:
  /// The stream on which LibTorch computes in this thread.
  static Stream compute(Device const& device);
  /// A separate stream with higher priority than the compute stream.
  static Stream high_priority(Device const& device);

  bool on_cpu() const { return kind_ == DeviceKind::cpu; }
  /// The vendor's handle (cudaStream_t), which may be null; null on the CPU.
  void* native() const { return native_.get(); }

 private:
  Stream(DeviceKind kind, std::shared_ptr<void> native) : kind_(kind), native_(std::move(native)) {}
  DeviceKind kind_;
  std::shared_ptr<void> native_;
};

/// A stream on which LibTorch computes in place of the compute stream, so that copies from pinned
/// memory need not wait for that one's work. On the CPU it is the same.
class SideStream {
 public:
  explicit SideStream(Device const& device);

  /// In `body`, LibTorch computes on this stream. Later work of the compute stream waits for that.
  void run(std::function<void()> const& body) const;
  /// Of a tensor that was made in `body`: the compute stream will use it.
  void hand_over(at::Tensor const& tensor) const;

 private:
  Device device_;
  std::shared_ptr<void> native_;  ///< null on the CPU
};

/// A point in a stream.
class Event {
 public:
  explicit Event(Device const& device);

  void record(Stream const& stream);
  /// Later work on `stream` waits for this point; the host does not wait.
  void wait_on_stream(Stream const& stream) const;
  void wait_on_host() const;
  bool done() const;

 private:
  std::shared_ptr<void> native_;
};

/// Host memory that the device can copy to and from while the host continues.
class PinnedBuffer {
 public:
  PinnedBuffer(Device const& device, std::size_t bytes);
  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return bytes_; }

 private:
  std::shared_ptr<std::byte> data_;
  std::size_t bytes_;
};

/// Copies between any two of host and device memory, in stream order.
void copy_async(void* destination, void const* source, std::size_t bytes, Stream const& stream);

}  // namespace stratagem::gpu
