#pragma once

#include <vector>

#include "strategy/ps/server.hpp"

namespace stratagem {

/// One update from the gradients of all workers, summed in worker order: what DDP computes. A chunk
/// is updated, and goes back, as soon as every worker's part of it has come.
class SyncPsServer final : public PsServer {
 public:
  using PsServer::PsServer;

  void drain() override;

 private:
  /// Of all workers, in their order; nothing when they have finished the round.
  std::vector<PsLine> receive_lines();
  void update(std::vector<PsLine> const& lines);

  std::int64_t version_ = 0;
};

}  // namespace stratagem
