#include "comm/inprocess/inprocess_memory.hpp"

#include <utility>

#include <ATen/ATen.h>

#include "base/text.hpp"
#include "comm/communicator.hpp"

namespace stratagem {
namespace {

using Message = InProcessGroup::Message;

/// For an empty message.
Message word() {
  return {at::empty({0}, at::kByte)};
}

}  // namespace

Work InProcessMemory::put(at::Tensor const& source, int peer, std::int64_t offset, int tag) {
  group_->begin(rank_);
  auto const done = std::make_shared<bool>(false);
  auto const target = of(peer).narrow(0, offset, source.numel());
  group_->later(rank_, peer, [group = group_.get(), rank = rank_, source, target, peer, tag, done] {
    copy_bytes(source, target);
    *done = true;
    group->send(rank, peer, tag, word());
  });
  return group_->work(rank_, str("put to rank ", peer), done);
}

Work InProcessMemory::await_put(int peer, int tag) {
  group_->begin(rank_);
  auto message = word();
  auto const done = message.done;
  group_->receive(peer, rank_, tag, std::move(message));
  return group_->work(rank_, str("put of rank ", peer), done);
}

Work InProcessMemory::get(at::Tensor const& target, int peer, std::int64_t offset, int tag) {
  group_->begin(rank_);
  auto const done = std::make_shared<bool>(false);
  auto const source = of(peer).narrow(0, offset, target.numel());
  auto offered = word();
  offered.then = [group = group_.get(), rank = rank_, source, target, peer, tag, done] {
    group->later(rank, peer, [group, rank, source, target, peer, tag, done] {
      copy_bytes(source, target);
      *done = true;
      group->send(rank, peer, tag + 1, word());
    });
  };
  group_->receive(peer, rank_, tag, std::move(offered));
  return group_->work(rank_, str("get from rank ", peer), done);
}

Work InProcessMemory::offer(int peer, int tag, std::int64_t /*bytes*/) {
  group_->begin(rank_);
  auto taken = word();
  auto const done = taken.done;
  group_->receive(peer, rank_, tag + 1, std::move(taken));
  group_->send(rank_, peer, tag, word());
  return group_->work(rank_, str("get of rank ", peer), done);
}

}  // namespace stratagem
