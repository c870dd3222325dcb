#include "comm/inprocess/inprocess_memory.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include <ATen/ATen.h>

namespace stratagem {
namespace {

/// Empty messages, and what is to be done when they have come.
class Told final : public WorkState {
 public:
  Told(std::vector<Work> messages, std::function<void()> then)
      : messages_(std::move(messages)), then_(std::move(then)) {}

  bool done() const override { return std::ranges::all_of(messages_, &Work::done); }
  void wait_on_stream() override { wait_on_host(); }
  void wait_on_host() override {
    for (auto& message : messages_) message.wait_on_host();
    messages_.clear();
    if (auto const then = std::exchange(then_, nullptr)) then();
  }

 private:
  std::vector<Work> messages_;
  std::function<void()> then_;
};

Work told(std::vector<Work> messages, std::function<void()> then = nullptr) {
  return Work(std::make_shared<Told>(std::move(messages), std::move(then)));
}

/// Bytes alone, so that autograd takes what arrives for no change that the pass has made.
void copy_bytes(at::Tensor const& from, at::Tensor const& to) {
  std::memcpy(to.data_ptr(), from.data_ptr(), static_cast<std::size_t>(bytes_of(from)));
}

at::Tensor empty_message() {
  return at::empty({0}, at::kByte);
}

}  // namespace

Work InProcessMemory::put(at::Tensor const& source, int peer, std::int64_t offset, int tag) {
  copy_bytes(source, of(peer).narrow(0, offset, source.numel()));
  return communicator_.send(empty_message(), peer, tag);
}

Work InProcessMemory::await_put(int peer, int tag) {
  return communicator_.receive(empty_message(), peer, tag);
}

Work InProcessMemory::get(at::Tensor const& target, int peer, std::int64_t offset, int tag) {
  std::vector<Work> messages;
  messages.push_back(communicator_.receive(empty_message(), peer, tag));
  return told(std::move(messages), [this, target, peer, offset, tag] {
    copy_bytes(of(peer).narrow(0, offset, target.numel()), target);
    communicator_.send(empty_message(), peer, tag + 1).wait_on_host();
  });
}

Work InProcessMemory::offer(int peer, int tag) {
  std::vector<Work> messages;
  messages.push_back(communicator_.send(empty_message(), peer, tag));
  messages.push_back(communicator_.receive(empty_message(), peer, tag + 1));
  return told(std::move(messages));
}

}  // namespace stratagem
