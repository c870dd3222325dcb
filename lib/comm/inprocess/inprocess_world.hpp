#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/inprocess/death.hpp"
#include "comm/inprocess/inprocess_communicator.hpp"
#include "comm/world.hpp"

namespace stratagem {

/// The groups of ranks that are threads of one process; see InProcessCommunicator.
class InProcessWorld final : public World {
 public:
  InProcessWorld(std::shared_ptr<SimulatedRanks> shared, int rank);

  Communicator& all() override { return all_; }

 private:
  std::vector<std::string> gather(std::string const& text) override;
  std::unique_ptr<Communicator> open(std::string const& name,
                                     std::vector<int> const& ranks) override;

  std::shared_ptr<SimulatedRanks> shared_;
  InProcessCommunicator all_;
};

/// Runs `body` on `ranks` threads, each with its world, in an order decided by `seed`. If a rank
/// throws, others that wait for it throw Error(peer_lost); the first exception is thrown here. If
/// ranks call different collectives, all throw Error(mismatch); if all ranks wait for each other,
/// all throw Error(stall). A rank that dies throws Error(peer_lost) from then on; some of its
/// operations in flight still arrive.
void run_worlds(int ranks, std::uint64_t seed, std::function<void(World&)> const& body,
                std::optional<Death> death = {});
/// The same, where the group of all ranks will do.
void run_ranks(int ranks, std::uint64_t seed, std::function<void(Communicator&)> const& body,
               std::optional<Death> death = {});

}  // namespace stratagem
