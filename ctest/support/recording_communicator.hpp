#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "base/text.hpp"
#include "comm/communicator.hpp"

namespace stratagem::test {

/// What happened on one rank, in its order: "forward", "all_gather 512", "wait all_gather 512".
using Events = std::vector<std::string>;

/// Notes what its rank sends, with the bytes of the whole, and the first wait for each operation.
class RecordingCommunicator final : public Communicator {
 public:
  RecordingCommunicator(Communicator& inner, Events& events) : inner_(inner), events_(events) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  std::string_view backend() const override { return inner_.backend(); }
  at::Tensor allocate(std::int64_t numel, at::ScalarType type) override {
    return inner_.allocate(numel, type);
  }
  CollectiveLog const& collectives() const override { return inner_.collectives(); }
  Work send(at::Tensor const& tensor, int peer, int tag) override {
    return noted("send", tensor, inner_.send(tensor, peer, tag));
  }
  Work receive(at::Tensor const& tensor, int peer, int tag) override {
    return Work(std::make_shared<Noted>(inner_.receive(tensor, peer, tag),
                                        str("receive ", bytes_of(tensor)), events_));
  }
  std::unique_ptr<RemoteMemory> share_memory(std::int64_t numel, at::ScalarType type) override {
    return inner_.share_memory(numel, type);
  }
  std::int64_t bytes_sent() const override { return inner_.bytes_sent(); }

 private:
  class Noted final : public WorkState {
   public:
    Noted(Work inner, std::string name, Events& events)
        : inner_(std::move(inner)), name_(std::move(name)), events_(events) {}

    bool done() const override { return inner_.done(); }
    void wait_on_stream() override {
      note();
      inner_.wait_on_stream();
    }
    void wait_on_host() override {
      note();
      inner_.wait_on_host();
    }

   private:
    void note() {
      if (!name_.empty()) events_.push_back("wait " + std::exchange(name_, {}));
    }

    Work inner_;
    std::string name_;
    Events& events_;
  };

  Work noted(char const* what, at::Tensor const& whole, Work inner) {
    auto const name = what + (" " + std::to_string(bytes_of(whole)));
    events_.push_back(name);
    return Work(std::make_shared<Noted>(std::move(inner), name, events_));
  }

  Work start_all_reduce(at::Tensor const& tensor) override {
    return noted("all_reduce", tensor, inner_.all_reduce(tensor));
  }
  Work start_reduce_scatter(at::Tensor const& output, at::Tensor const& input) override {
    return noted("reduce_scatter", input, inner_.reduce_scatter(output, input));
  }
  Work start_all_gather(at::Tensor const& output, at::Tensor const& input) override {
    return noted("all_gather", output, inner_.all_gather(output, input));
  }
  Work start_broadcast(at::Tensor const& tensor, int root) override {
    return inner_.broadcast(tensor, root);
  }
  Work start_barrier() override { return inner_.barrier(); }

  Communicator& inner_;
  Events& events_;
};

}  // namespace stratagem::test
