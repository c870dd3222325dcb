// The functions of the CUDA runtime that lib/gpu/cuda uses, on a device that is the host: memory is
// host memory and a stream's work is done when it was submitted. Linked into a test program, they
// come before those of libcudart.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda_runtime_api.h>

#include "support/fakes/faults.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using stratagem::test::faults;

/// What a cudaEvent_t points to.
struct FakeEvent {
  bool happened = true;
  Clock::time_point time;
};

FakeEvent* event_of(cudaEvent_t event) {
  return reinterpret_cast<FakeEvent*>(event);
}

constexpr int version = 13000;

}  // namespace

stratagem::test::Faults& stratagem::test::faults() {
  static Faults faults;
  return faults;
}

extern "C" {

cudaError_t cudaRuntimeGetVersion(int* out) {
  return *out = version, cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* out) {
  return *out = version, cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  return *count = 1, cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}
cudaError_t cudaDeviceSynchronize() {
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
char const* cudaGetErrorString(cudaError_t) {
  return "an error of the fake device";
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = *total = size_t{1} << 30;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int) {
  std::snprintf(text, static_cast<size_t>(length), "0000:00:00.0");
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -1;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  *stream = reinterpret_cast<cudaStream_t>(new char);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete reinterpret_cast<char*>(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) {
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new FakeEvent);
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, 0);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event_of(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  *event_of(event) = {!faults().device_hangs, Clock::now()};
  return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  return *status = cudaStreamCaptureStatusNone, cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  std::atomic_ref<int> late(faults().late_queries);
  if (late.load() > 0 && late.fetch_sub(1) % 2 == 0) return cudaErrorNotReady;
  return event_of(event)->happened ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return cudaEventQuery(event);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  std::chrono::duration<float, std::milli> const elapsed =
      event_of(end)->time - event_of(begin)->time;
  *milliseconds = elapsed.count();
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** memory, size_t bytes) {
  *memory = std::malloc(bytes);
  return *memory != nullptr || bytes == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, void const* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

}  // extern "C"
