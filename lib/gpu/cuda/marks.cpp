#include "gpu/marks.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/clock.hpp"
#include "gpu/cuda/check.hpp"
#include "gpu/cuda/compute_stream.hpp"

namespace stratagem::gpu {

struct Marks::Impl {
  Device device;
  int capacity = 0;
  std::vector<std::int64_t> times;  ///< on the CPU when added, on a GPU once resolved
  std::vector<cudaEvent_t> events;  ///< one per possible mark; empty on the CPU
  int used = 0;
  std::int64_t first_ns = 0;  ///< host time when mark 0 was submitted
};

Marks::Marks(Device const& device, int capacity) : impl_(std::make_unique<Impl>()) {
  impl_->device = device;
  impl_->capacity = capacity;
  impl_->times.resize(static_cast<std::size_t>(capacity));
  if (device.kind == DeviceKind::cpu) return;
  select(device);
  impl_->events.resize(static_cast<std::size_t>(capacity));
  for (auto& event : impl_->events) check(cudaEventCreate(&event), "cudaEventCreate");
}

Marks::~Marks() {
  for (auto event : impl_->events) cudaEventDestroy(event);
}

int Marks::expect() {
  if (impl_->used == impl_->capacity) return -1;
  auto const index = impl_->used++;
  if (impl_->events.empty())
    impl_->times[static_cast<std::size_t>(index)] = monotonic_ns();
  else if (index == 0)
    impl_->first_ns = monotonic_ns();
  return index;
}

int Marks::add() {
  int const mark = expect();
  if (mark < 0 || impl_->events.empty()) return mark;
  auto const stream = torch_stream(impl_->device);
  auto capturing = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream, &capturing), "cudaStreamIsCapturing");
  // Of a graph, its own node: otherwise no more than an order among its nodes.
  auto const kind =
      capturing == cudaStreamCaptureStatusNone ? cudaEventRecordDefault : cudaEventRecordExternal;
  check(cudaEventRecordWithFlags(static_cast<cudaEvent_t>(handle(mark)), stream, kind),
        "cudaEventRecordWithFlags");
  return mark;
}

void Marks::keep_first(int count) {
  impl_->used = count;
}

void* Marks::handle(int mark) const {
  return impl_->events.empty() ? nullptr : impl_->events[static_cast<std::size_t>(mark)];
}

void Marks::resolve(std::int64_t not_before) {
  if (impl_->events.empty() || impl_->used == 0) return;
  auto const last = static_cast<std::size_t>(impl_->used - 1);
  check(cudaEventSynchronize(impl_->events[last]), "cudaEventSynchronize");
  auto const begin = std::max(impl_->first_ns, not_before);
  for (std::size_t i = 0; i <= last; ++i) {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, impl_->events[0], impl_->events[i]),
          "cudaEventElapsedTime");
    impl_->times[i] = begin + std::llround(1e6 * static_cast<double>(milliseconds));
  }
}

std::int64_t Marks::ns(int mark) const {
  return impl_->times[static_cast<std::size_t>(mark)];
}

void Marks::clear() {
  impl_->used = 0;
}

}  // namespace stratagem::gpu
