#include "gpu/marks.hpp"

#include <vector>

#include "base/clock.hpp"

namespace stratagem::gpu {

struct Marks::Impl {
  std::vector<std::int64_t> times;
};

Marks::Marks(Device const&, int capacity) : impl_(std::make_unique<Impl>()) {
  impl_->times.reserve(static_cast<std::size_t>(capacity));
}

Marks::~Marks() = default;

int Marks::add() {
  if (impl_->times.size() == impl_->times.capacity()) return -1;
  impl_->times.push_back(monotonic_ns());
  return static_cast<int>(impl_->times.size()) - 1;
}

int Marks::expect() {
  return add();
}

void Marks::keep_first(int count) {
  impl_->times.resize(static_cast<std::size_t>(count));
}

void* Marks::handle(int) const {
  return nullptr;
}

void Marks::resolve(std::int64_t) {}

std::int64_t Marks::ns(int mark) const {
  return impl_->times[static_cast<std::size_t>(mark)];
}

void Marks::clear() {
  impl_->times.clear();
}

}  // namespace stratagem::gpu
