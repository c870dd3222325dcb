#include "comm/inprocess/inprocess_memory.hpp"

#include <utility>

#include <ATen/ATen.h>

#include "base/text.hpp"
#include "comm/communicator.hpp"

namespace stratagem {
namespace {

using Message = SimulatedRanks::Message;

/// For an empty message.
Message word() {
  return {at::empty({0}, at::kByte)};
}

}  // namespace

Work InProcessMemory::work(std::string what, std::shared_ptr<bool> done) const {
  return member_.shared->work(member_.own(), std::move(what), std::move(done));
}

Work InProcessMemory::put(at::Tensor const& source, int peer, std::int64_t offset, int tag) {
  auto* const shared = member_.shared.get();
  shared->begin(member_.own());
  auto const done = std::make_shared<bool>(false);
  auto const target = of(peer).narrow(0, offset, source.numel());
  auto const route = member_.to(peer, tag);
  shared->later(route.from, route.to, [shared, source, target, route, done] {
    copy_bytes(source, target);
    *done = true;
    shared->send(route, word());
  });
  return work(str("put to rank ", peer), done);
}

Work InProcessMemory::await_put(int peer, int tag) {
  member_.shared->begin(member_.own());
  auto message = word();
  auto const done = message.done;
  member_.shared->receive(member_.from(peer, tag), std::move(message));
  return work(str("put of rank ", peer), done);
}

Work InProcessMemory::get(at::Tensor const& target, int peer, std::int64_t offset, int tag) {
  auto* const shared = member_.shared.get();
  shared->begin(member_.own());
  auto const done = std::make_shared<bool>(false);
  auto const source = of(peer).narrow(0, offset, target.numel());
  auto const back = member_.to(peer, tag + 1);
  auto offered = word();
  offered.then = [shared, source, target, back, done] {
    shared->later(back.from, back.to, [shared, source, target, back, done] {
      copy_bytes(source, target);
      *done = true;
      shared->send(back, word());
    });
  };
  shared->receive(member_.from(peer, tag), std::move(offered));
  return work(str("get from rank ", peer), done);
}

Work InProcessMemory::offer(int peer, int tag, std::int64_t /*bytes*/) {
  auto& shared = *member_.shared;
  shared.begin(member_.own());
  auto taken = word();
  auto const done = taken.done;
  shared.receive(member_.from(peer, tag + 1), std::move(taken));
  shared.send(member_.to(peer, tag), word());
  return work(str("get of rank ", peer), done);
}

}  // namespace stratagem
