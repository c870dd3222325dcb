#include "comm/node/arena.hpp"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

#include "base/error.hpp"
#include "base/system.hpp"
#include "gpu/counted_bytes.hpp"

namespace stratagem {
namespace {

constexpr std::size_t address_space = std::size_t{1} << 46;  // half of what a process has

/// What a rank could need at most, so that the segments of all can be mapped.
std::size_t size_of_segment(int ranks) {
  // The reservation would count, and leave nothing for other memory.
  if (limits_address_space())
    throw Error(ExitCode::environment, "no memory can be shared between processes",
                "their address space is limited (ulimit -v)");
  auto const machine = static_cast<std::size_t>(machine_bytes());
  return SharedSegment::to_pages(
      std::min(machine, address_space / static_cast<std::size_t>(ranks)));
}

}  // namespace

/// The pages of a tensor, until it is gone.
class NodeArena::Lease {
 public:
  Lease(std::shared_ptr<NodeArena> arena, Range const& range, std::int64_t counted)
      : arena_(std::move(arena)), range_(range), counted_(counted) {}
  ~Lease() { arena_->give_back(range_); }
  Lease(Lease const&) = delete;
  Lease& operator=(Lease const&) = delete;

 private:
  std::shared_ptr<NodeArena> arena_;
  Range range_;
  gpu::CountedBytes counted_;
};

NodeArena::NodeArena(int ranks)
    : own_(SharedSegment::create(size_of_segment(ranks))), free_{{0, own_.bytes().size()}} {}

void NodeArena::open(std::vector<std::string> const& addresses, int rank) {
  rank_ = rank;
  others_.reserve(addresses.size());
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (static_cast<int>(i) == rank) {
      segments_.push_back(own_.bytes());
    } else {
      others_.push_back(SharedSegment::open(addresses[i]));
      segments_.push_back(others_.back().bytes());
    }
  }
}

std::optional<at::Tensor> NodeArena::allocate(std::int64_t numel, at::ScalarType type) {
  auto const bytes = static_cast<std::size_t>(numel) * at::elementSize(type);
  auto const options = at::TensorOptions().dtype(type);
  if (bytes == 0) return at::empty({numel}, options);
  auto const range = take(SharedSegment::to_pages(bytes));
  if (!range) return std::nullopt;
  auto lease =
      std::make_shared<Lease>(shared_from_this(), *range, static_cast<std::int64_t>(bytes));
  return at::from_blob(
      own_.bytes().data() + range->begin, {numel}, [lease](void*) {}, options);
}

std::int64_t NodeArena::reserve(std::size_t bytes) {
  auto const range = take(SharedSegment::to_pages(bytes));
  if (!range)
    throw Error(ExitCode::environment, "no memory can be shared between the ranks of a node",
                "the system has none left");
  return static_cast<std::int64_t>(range->begin);
}

at::Tensor NodeArena::room_for(at::Tensor const& tensor) {
  if (place_of(tensor.data_ptr())) return tensor;
  auto const room = allocate(tensor.numel(), tensor.scalar_type());
  if (!room)
    throw Error(ExitCode::out_of_memory, "no memory is left that the ranks of a node could share");
  return *room;
}

std::optional<std::int64_t> NodeArena::place_of(void const* data) const {
  auto const own = own_.bytes();
  auto const* const place = static_cast<std::byte const*>(data);
  if (place < own.data() || place >= own.data() + own.size()) return std::nullopt;
  return place - own.data();
}

std::optional<NodeArena::Range> NodeArena::take(std::size_t bytes) {
  std::lock_guard const lock(mutex_);
  auto const found =
      std::ranges::find_if(free_, [&](Range const& range) { return range.bytes >= bytes; });
  if (found == free_.end() || !own_.hold(found->begin, bytes)) return std::nullopt;
  Range const taken{found->begin, bytes};
  if (found->bytes == bytes)
    free_.erase(found);
  else
    *found = {found->begin + bytes, found->bytes - bytes};
  return taken;
}

void NodeArena::give_back(Range const& range) {
  std::lock_guard const lock(mutex_);
  own_.release(range.begin, range.bytes);
  auto const next =
      free_.insert(std::ranges::upper_bound(free_, range.begin, {}, &Range::begin), range);
  auto const joins = [](Range const& a, Range const& b) { return a.begin + a.bytes == b.begin; };
  if (auto const after = next + 1; after != free_.end() && joins(*next, *after)) {
    next->bytes += after->bytes;
    free_.erase(after);
  }
  if (next != free_.begin() && joins(*(next - 1), *next)) {
    (next - 1)->bytes += next->bytes;
    free_.erase(next);
  }
}

}  // namespace stratagem
