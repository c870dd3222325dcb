#include "comm/node/open_arena.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/system.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

/// The first text that is not empty, if there is one.
std::string first_of(std::vector<std::string> const& texts) {
  auto const found = std::ranges::find_if(texts, [](auto const& text) { return !text.empty(); });
  return found == texts.end() ? std::string() : *found;
}

/// Processes in other namespaces cannot be found under the ids that they have there.
void require_one_process_space(mpi::Comm const& comm) {
  auto const all = comm.all_gather(std::to_string(process_space()));
  if (std::ranges::count(all, all.front()) < comm.size())
    throw Error(ExitCode::environment, "the ranks are in containers of their own");
}

/// Runs `part` on all ranks. The first failure of any, or nothing; the same on all.
template <class Part>
std::string failure_of_any(mpi::Comm const& comm, Part part) {
  std::string own;
  try {
    part();
  } catch (Error const& problem) {
    own = str("rank ", comm.rank(), ": ", problem.what());
  }
  return first_of(comm.all_gather(own));
}

/// Why the ranks of a group have no memory in common that is of use to them; the same on all.
std::string reason_against(mpi::Comm const& comm, gpu::Device const& device) {
  std::string own;
  if (comm.split_node().size() < comm.size()) own = "the ranks are on several nodes";
  if (device.kind != gpu::DeviceKind::cpu) own = "the tensors are on GPUs";
  return first_of(comm.all_gather(own));
}

}  // namespace

OpenedArena open_arena(mpi::Comm const& comm, NodeMemoryMode mode, gpu::Device const& device,
                       std::size_t room) {
  if (mode == NodeMemoryMode::off) return {};
  OpenedArena opened;
  std::string address;
  auto absent = reason_against(comm, device);
  if (absent.empty()) {
    opened.failure = failure_of_any(comm, [&] {
      require_one_process_space(comm);
      opened.arena = std::make_shared<NodeArena>(room, comm.size());
      address = opened.arena->address();
    });
    auto const addresses = comm.all_gather(address);
    if (opened.failure.empty())
      opened.failure = failure_of_any(comm, [&] { opened.arena->open(addresses, comm.rank()); });
    if (!opened.failure.empty()) opened.arena.reset();
    absent = opened.failure;
  }
  if (mode == NodeMemoryMode::required && !absent.empty())
    throw AgreedError(ExitCode::environment,
                      "comm.node_memory is required, and ranks cannot share memory", absent,
                      "take comm.node_memory: auto, which sends messages instead");
  return opened;
}

}  // namespace stratagem
