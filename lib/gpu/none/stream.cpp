#include "gpu/stream.hpp"

#include <cstring>

namespace stratagem::gpu {

Stream Stream::compute(Device const&) {
  return {DeviceKind::cpu, nullptr};
}
Stream Stream::high_priority(Device const&) {
  return {DeviceKind::cpu, nullptr};
}

SideStream::SideStream(Device const& device) : device_(device) {}
void SideStream::run(std::function<void()> const& body) const {
  body();
}
void SideStream::hand_over(at::Tensor const&) const {}

Event::Event(Device const&) {}
void Event::record(Stream const&) {}
void Event::wait_on_stream(Stream const&) const {}
void Event::wait_on_host() const {}
bool Event::done() const {
  return true;
}

PinnedBuffer::PinnedBuffer(Device const&, std::size_t bytes)
    : data_(new std::byte[bytes], std::default_delete<std::byte[]>()), bytes_(bytes) {}

void copy_async(void* destination, void const* source, std::size_t bytes, Stream const&) {
  std::memcpy(destination, source, bytes);
}

}  // namespace stratagem::gpu
