#pragma once

#include <deque>
#include <vector>

#include "strategy/ps/server.hpp"

namespace stratagem {

/// One update from the gradients of all workers, summed in worker order: what DDP computes. A chunk
/// is updated, and goes back, as soon as every worker's part of it has come, unless the norm of the
/// whole sum decides what becomes of it: under loss scaling and clipping. Workers that are a
/// version behind take it in the step after, and until then its memory is theirs.
class SyncPsServer final : public PsServer {
 public:
  using PsServer::PsServer;

  void serve(Round const& round) override;
  /// With the loss scale, which all workers have alike.
  State state() override;

 private:
  /// Of all workers, in their order; nothing when they have finished the round.
  std::vector<PushHeader> receive_lines();
  /// Tells all workers, if this is server 0.
  std::vector<Work> send(PullReply const& answer);
  /// Throws what ends the run after this step, on all ranks.
  void check(PullReply const& answer, std::int64_t step);

  /// A step under way: all workers' gradients, by worker and own chunk, and what is known of it.
  struct Step {
    std::vector<std::vector<Work>> arriving;
    trace::PsRecord record;
  };
  Step begin(PushHeader const& line);
  void update_by_chunk(PushHeader const& line);
  /// `answer` gets the norm, and is sent.
  void update_as_a_whole(PushHeader const& line, PullReply answer);
  /// Reads and adds up a chunk when it has come from all workers.
  void collect(Step& step, std::size_t chunk);
  /// Makes a chunk what workers compute with next, and sends it.
  void publish(Step& step, std::size_t chunk, double lr);
  void end(Step const& step);
  /// The one of the whole shard.
  ParameterStore& store() { return stores_.front(); }
  /// Of the sum of all gradients, on all servers.
  double norm();

  std::int64_t version_ = 0;
  std::deque<std::int64_t> in_use_;         ///< versions that workers have, the oldest first
  std::vector<std::vector<Work>> leaving_;  ///< by own chunk
};

}  // namespace stratagem
