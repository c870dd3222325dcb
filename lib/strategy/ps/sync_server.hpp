#pragma once

#include <vector>

#include "strategy/ps/server.hpp"

namespace stratagem {

/// One update from the gradients of all workers, summed in worker order: what DDP computes. A chunk
/// is updated, and goes back, as soon as every worker's part of it has come; workers that are a
/// version behind take it in the step after, and until then its memory is theirs.
class SyncPsServer final : public PsServer {
 public:
  using PsServer::PsServer;

  void drain() override;

 private:
  /// Of all workers, in their order; nothing when they have finished the round.
  std::vector<PsLine> receive_lines();
  void update(std::vector<PsLine> const& lines);
  void record(PsLine const& line, std::int64_t t_ready, std::int64_t t_seen, std::int64_t busy);

  std::int64_t version_ = 0;
  std::int64_t round_begin_ = 0;            ///< version at the begin of the round
  std::vector<std::vector<Work>> leaving_;  ///< by own chunk
};

}  // namespace stratagem
