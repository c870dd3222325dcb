#include "gpu/stream.hpp"

#include <cstring>

#include "gpu/cuda/check.hpp"
#include "gpu/cuda/compute_stream.hpp"

namespace stratagem::gpu {
namespace {

cudaStream_t stream_of(Stream const& stream) {
  return static_cast<cudaStream_t>(stream.native());
}
cudaEvent_t event_of(std::shared_ptr<void> const& native) {
  return static_cast<cudaEvent_t>(native.get());
}

}  // namespace

Stream Stream::compute(Device const& device) {
  if (device.kind == DeviceKind::cpu) return {DeviceKind::cpu, nullptr};
  return {device.kind, {torch_stream(device), [](void*) {}}};
}

Stream Stream::high_priority(Device const& device) {
  if (device.kind == DeviceKind::cpu) return {DeviceKind::cpu, nullptr};
  select(device);
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest),
        "cudaStreamCreateWithPriority");
  return {device.kind, {stream, [](void* s) { cudaStreamDestroy(static_cast<cudaStream_t>(s)); }}};
}

Event::Event(Device const& device) {
  if (device.kind == DeviceKind::cpu) return;
  select(device);
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  native_ = {event, [](void* e) { cudaEventDestroy(static_cast<cudaEvent_t>(e)); }};
}

void Event::record(Stream const& stream) {
  if (native_) check(cudaEventRecord(event_of(native_), stream_of(stream)), "cudaEventRecord");
}

void Event::wait_on_stream(Stream const& stream) const {
  if (native_)
    check(cudaStreamWaitEvent(stream_of(stream), event_of(native_), 0), "cudaStreamWaitEvent");
}

void Event::wait_on_host() const {
  if (native_) check(cudaEventSynchronize(event_of(native_)), "cudaEventSynchronize");
}

bool Event::done() const {
  if (!native_) return true;
  auto const code = cudaEventQuery(event_of(native_));
  if (code != cudaErrorNotReady) check(code, "cudaEventQuery");
  return code == cudaSuccess;
}

PinnedBuffer::PinnedBuffer(Device const& device, std::size_t bytes) : bytes_(bytes) {
  if (device.kind == DeviceKind::cpu) {
    data_ = {new std::byte[bytes], std::default_delete<std::byte[]>()};
    return;
  }
  void* memory = nullptr;
  check(cudaMallocHost(&memory, bytes), "cudaMallocHost");
  data_ = {static_cast<std::byte*>(memory), [](std::byte* m) { cudaFreeHost(m); }};
}

void copy_async(void* destination, void const* source, std::size_t bytes, Stream const& stream) {
  if (stream.on_cpu()) {
    std::memcpy(destination, source, bytes);
    return;
  }
  check(cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDefault, stream_of(stream)),
        "cudaMemcpyAsync");
}

}  // namespace stratagem::gpu
