#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "comm/collective_log.hpp"
#include "comm/inprocess/death.hpp"
#include "comm/inprocess/network.hpp"
#include "comm/inprocess/turns.hpp"
#include "comm/work/work.hpp"

namespace stratagem {

/// Some of the simulated ranks.
struct SimulatedGroup {
  std::string name;        ///< which no other group has; "": of all ranks
  std::vector<int> ranks;  ///< ascending
};

/// The shared state of ranks that are threads of one process, for all their groups. Only the rank
/// whose turn it is uses it. Ranks are counted among all.
class SimulatedRanks : public std::enable_shared_from_this<SimulatedRanks> {
 public:
  SimulatedRanks(int ranks, std::uint64_t seed, std::optional<Death> death);

  SimulatedGroup const& all() const { return all_; }
  Turns& turns() { return turns_; }

  /// The rank begins an operation, or waits for one: lets the others run, or dies.
  void begin(int rank);
  /// Throws if the rank has died, whatever it made of that.
  void expect_alive(int rank) const;
  void wait(int rank, std::string const& what, std::shared_ptr<bool> const& done);
  void poll(int rank);

  /// The rank's part in the `sequence`-th collective of a group; the tensors are undefined for a
  /// barrier.
  Work meet(SimulatedGroup const& group, int rank, std::int64_t sequence,
            CollectiveCall const& call, at::Tensor const& output, at::Tensor const& input);

  /// One side of a message. When it has arrived, `then` is called.
  struct Message {
    at::Tensor tensor;
    std::shared_ptr<bool> done = std::make_shared<bool>(false);
    std::function<void()> then = {};
  };
  /// The ends of a message, and what tells it from others between them.
  struct Route {
    std::string group;
    int from, to, tag;

    auto operator<=>(Route const&) const = default;
  };
  /// Matched by route in order.
  void send(Route const& route, Message message);
  void receive(Route const& route, Message message);
  /// Another event between two ranks, at a random time.
  void later(int rank, int peer, std::function<void()> arrival) {
    network_.add({rank, peer}, std::move(arrival));
  }
  bool chance() { return network_.chance(); }

  Work work(int rank, std::string what, std::shared_ptr<bool> done);

  using Memories = std::shared_ptr<std::vector<at::Tensor>>;  ///< by rank of the group
  /// The `number`-th memory that the ranks of a group share.
  Memories memories(SimulatedGroup const& group, std::size_t number);

 private:
  /// A collective that some ranks have called.
  struct Meeting {
    std::vector<int> ranks;
    CollectiveCall call;
    int first;                                ///< the rank that called it first
    std::vector<at::Tensor> outputs, inputs;  ///< by rank of the group, as is `done`
    std::vector<std::shared_ptr<bool>> done;
    std::size_t arrived = 0;
  };
  /// Unmatched sends and receives of a route; one of the two lists is empty.
  struct Mailbox {
    std::deque<Message> sends, receives;
  };

  void live(int rank);
  void carry_out(Meeting const& meeting);
  void match(Route const& route, Mailbox& mailbox);
  /// Calls `act`; an exception of it is the reason why other ranks may wait forever.
  template <class Act>
  void for_all(Act act);

  SimulatedGroup all_;
  Network network_;
  Turns turns_;
  std::optional<Death> death_;
  std::int64_t lived_ = 0;  ///< calls of the rank that dies
  std::map<std::pair<std::string, std::int64_t>, Meeting> meetings_;  ///< by group and sequence
  std::map<Route, Mailbox> mailboxes_;
  std::map<std::pair<std::string, std::size_t>, Memories> memories_;  ///< by group and number
};

/// A rank in one of its groups. Peers are counted in the group.
struct SimulatedMember {
  std::shared_ptr<SimulatedRanks> shared;
  SimulatedGroup group;
  int rank = 0;  ///< in the group

  int world_rank(int member) const { return group.ranks[static_cast<std::size_t>(member)]; }
  int own() const { return world_rank(rank); }
  SimulatedRanks::Route to(int peer, int tag) const {
    return {group.name, own(), world_rank(peer), tag};
  }
  SimulatedRanks::Route from(int peer, int tag) const {
    return {group.name, world_rank(peer), own(), tag};
  }
};

/// Copies plain bytes, so that autograd does not count received data as a change made by a pass.
void copy_bytes(at::Tensor const& from, at::Tensor const& to);

}  // namespace stratagem
