#include "comm/inprocess/inprocess_world.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include <ATen/Parallel.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/agreement.hpp"
#include "comm/ranks_text.hpp"

namespace stratagem {

InProcessWorld::InProcessWorld(std::shared_ptr<SimulatedRanks> shared, int rank)
    : shared_(std::move(shared)), all_({shared_, shared_->all(), rank}) {}

std::vector<std::string> InProcessWorld::gather(std::string const& text) {
  return gather_texts(all_, text);
}

std::unique_ptr<Communicator> InProcessWorld::open(std::string const& name,
                                                   std::vector<int> const& ranks) {
  auto const own = std::ranges::find(ranks, all_.rank()) - ranks.begin();
  SimulatedGroup const group{str(name, " of ", list_ranks(ranks)), ranks};
  return std::make_unique<InProcessCommunicator>(
      SimulatedMember{shared_, group, static_cast<int>(own)});
}

void run_worlds(int ranks, std::uint64_t seed, std::function<void(World&)> const& body,
                std::optional<Death> death) {
  auto const shared = std::make_shared<SimulatedRanks>(ranks, seed, death);
  std::mutex mutex;
  std::exception_ptr first;
  auto const run = [&](int rank) {
    at::set_num_threads(1);
    try {
      shared->turns().enter(rank);
      InProcessWorld world(shared, rank);
      body(world);
      shared->expect_alive(rank);  // what waits in a destructor does not throw
      shared->turns().leave(rank);
    } catch (...) {
      {
        std::lock_guard const lock(mutex);
        if (!first) first = std::current_exception();
      }
      shared->turns().fail(std::make_exception_ptr(
          Error(ExitCode::peer_lost, str("rank ", rank, " ended with an error"))));
      shared->turns().leave(rank);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run, rank);
  }
  if (first) std::rethrow_exception(first);
}

void run_ranks(int ranks, std::uint64_t seed, std::function<void(Communicator&)> const& body,
               std::optional<Death> death) {
  run_worlds(
      ranks, seed, [&](World& world) { body(world.all()); }, death);
}

}  // namespace stratagem
