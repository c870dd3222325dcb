#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/core/Tensor.h>

#include "comm/collective_log.hpp"
#include "comm/inprocess/death.hpp"
#include "comm/inprocess/network.hpp"
#include "comm/inprocess/turns.hpp"
#include "comm/work/work.hpp"

namespace stratagem {

/// The shared state of ranks that are threads of one process. Only the rank whose turn it is uses
/// it.
class InProcessGroup : public std::enable_shared_from_this<InProcessGroup> {
 public:
  InProcessGroup(int ranks, std::uint64_t seed, std::optional<Death> death);

  int size() const { return size_; }
  Turns& turns() { return turns_; }

  /// The rank begins an operation, or waits for one: lets the others run, or dies.
  void begin(int rank);
  /// Throws if the rank has died, whatever it made of that.
  void expect_alive(int rank) const;
  void wait(int rank, std::string const& what, std::shared_ptr<bool> const& done);
  void poll(int rank);

  /// The rank's part in the `sequence`-th collective; the tensors are undefined for a barrier.
  Work meet(int rank, std::int64_t sequence, CollectiveCall const& call, at::Tensor const& output,
            at::Tensor const& input);

  /// One side of a message. When it has arrived, `then` is called.
  struct Message {
    at::Tensor tensor;
    std::shared_ptr<bool> done = std::make_shared<bool>(false);
    std::function<void()> then = {};
  };
  /// Matched by (from, to, tag) in order.
  void send(int from, int to, int tag, Message message);
  void receive(int from, int to, int tag, Message message);
  /// Another event between two ranks, at a random time.
  void later(int rank, int peer, std::function<void()> arrival) {
    network_.add({rank, peer}, std::move(arrival));
  }
  bool chance() { return network_.chance(); }

  Work work(int rank, std::string what, std::shared_ptr<bool> done);

  using Memories = std::shared_ptr<std::vector<at::Tensor>>;  ///< by rank
  /// The `number`-th memory that the ranks share.
  Memories memories(std::size_t number);

 private:
  /// A collective that some ranks have called.
  struct Meeting {
    CollectiveCall call;
    int first;  ///< the rank that called it first
    std::vector<at::Tensor> outputs, inputs;
    std::vector<std::shared_ptr<bool>> done;  ///< by rank
    int arrived = 0;
  };
  /// Unmatched sends and receives of one (from, to, tag); one of the two lists is empty.
  struct Mailbox {
    std::deque<Message> sends, receives;
  };

  void live(int rank);
  void carry_out(Meeting const& meeting);
  void match(int from, int to, Mailbox& mailbox);
  /// Calls `act`; an exception of it is the reason why other ranks may wait forever.
  template <class Act>
  void for_all(Act act);

  int size_;
  Network network_;
  Turns turns_;
  std::optional<Death> death_;
  std::int64_t lived_ = 0;                    ///< calls of the rank that dies
  std::map<std::int64_t, Meeting> meetings_;  ///< by sequence number
  std::map<std::tuple<int, int, int>, Mailbox> mailboxes_;
  std::map<std::size_t, Memories> memories_;
};

/// Copies plain bytes, so that autograd does not count received data as a change made by a pass.
void copy_bytes(at::Tensor const& from, at::Tensor const& to);

}  // namespace stratagem
