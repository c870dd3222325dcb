#include "comm/node/open_arena.hpp"

#include <algorithm>
#include <set>
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
void require_one_process_space(mpi::Comm const& node) {
  auto const all = node.all_gather(std::to_string(process_space()));
  if (std::ranges::count(all, all.front()) < node.size())
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

/// How ranks lie on nodes; `nodes` and `regular` are the same on all.
struct Places {
  mpi::Comm node;  ///< the ranks of this one
  int first;       ///< the lowest of them
  int nodes;
  bool regular;  ///< every node has equally many ranks, and consecutive ones
};

Places places_of(mpi::Comm const& comm, mpi::Comm const& node) {
  auto const first = std::stoi(node.all_gather(std::to_string(comm.rank())).front());
  auto const size = node.size();
  auto const seen = comm.all_gather(str(first, " ", size));
  bool regular = true;
  for (int rank = 0; rank < comm.size(); ++rank)
    regular = regular && seen[static_cast<std::size_t>(rank)] == str(rank - rank % size, " ", size);
  return {node, first, static_cast<int>(std::set(seen.begin(), seen.end()).size()), regular};
}

mpi::Comm node_of(mpi::Comm const& comm, NodeUse const& use) {
  return use.ranks_per_node > 0 ? comm.split(comm.rank() / use.ranks_per_node) : comm.split_node();
}

/// Why memory in common would be of no use to the ranks; empty if it is of use. The same on all.
std::string reason_against(mpi::Comm const& comm, Places const& places, NodeUse const& use,
                           gpu::Device const& device) {
  auto const gpu = first_of(
      comm.all_gather(device.kind == gpu::DeviceKind::cpu ? "" : "the tensors are on GPUs"));
  if (!gpu.empty() || places.nodes == 1) return gpu;
  bool const alone = places.regular && places.node.size() == 1;
  if (use.algorithm == CommAlgorithm::flat || (use.algorithm == CommAlgorithm::automatic && alone))
    return "the ranks are on several nodes";
  return "";
}

/// The ranks of `node` in their arena; `marks`: the place of this rank's.
std::unique_ptr<NodeGroup> part_of(std::shared_ptr<NodeArena> const& arena, mpi::Comm const& node,
                                   std::int64_t marks) {
  std::vector<NodeGroup::Member> members;
  for (auto const& told : node.all_gather(str(arena->rank(), " ", marks))) {
    auto const words = split(told, ' ');
    members.push_back({std::stoi(words[0]), std::stoll(words[1])});
  }
  return std::make_unique<NodeGroup>(arena, std::move(members));
}

/// Opens the arena of each node.
void open(OpenedArena& opened, mpi::Comm const& comm, mpi::Comm const& node) {
  std::string address;
  std::int64_t marks = 0;
  opened.failure = failure_of_any(comm, [&] {
    require_one_process_space(node);
    opened.arena = std::make_shared<NodeArena>(node.size());
    marks = opened.arena->reserve(NodeGroup::room);
    address = opened.arena->address();
  });
  auto const addresses = node.all_gather(address);
  if (opened.failure.empty())
    opened.failure = failure_of_any(comm, [&] { opened.arena->open(addresses, node.rank()); });
  if (opened.failure.empty())
    opened.all.part = part_of(opened.arena, node, marks);
  else
    opened.arena.reset();
}

/// Ends the run if there is no arena although one is required; `absent` says why.
void check_requirements(NodeUse const& use, int nodes, std::string const& absent) {
  if (use.memory == NodeMemoryMode::required)
    throw AgreedError(ExitCode::environment,
                      "comm.node_memory is required, and ranks cannot share memory", absent,
                      "take comm.node_memory: auto, which sends messages instead");
  if (use.algorithm == CommAlgorithm::chain && nodes > 1)
    throw AgreedError(ExitCode::environment, "comm.algorithm: chain cannot be used here", absent,
                      "start equally many consecutive ranks on each node (Slurm: "
                      "--ntasks-per-node and --distribution=block), or take comm.algorithm: auto");
}

}  // namespace

OpenedArena open_arena(mpi::Comm const& comm, NodeUse const& use, gpu::Device const& device) {
  auto const places = places_of(comm, node_of(comm, use));
  OpenedArena opened{.all = {.part = nullptr, .nodes = places.nodes}, .node = places.first};
  if (use.memory == NodeMemoryMode::off) return opened;
  auto absent = reason_against(comm, places, use, device);
  if (absent.empty() && places.regular) open(opened, comm, places.node);
  if (absent.empty() && !places.regular)
    opened.failure = "nodes have unequally many ranks, or ranks that are not consecutive";
  if (absent.empty()) absent = opened.failure;
  if (!opened.arena) check_requirements(use, places.nodes, absent);
  return opened;
}

OnNodes open_group(mpi::Comm const& group, OpenedArena const& opened) {
  auto const places = places_of(group, group.split(opened.node));
  OnNodes on{.part = nullptr, .nodes = places.nodes};
  bool const alone = places.node.size() == 1;  // on its node
  if (!opened.arena || !places.regular || alone) return on;
  std::int64_t marks = 0;
  auto const failure =
      failure_of_any(group, [&] { marks = opened.arena->reserve(NodeGroup::room); });
  if (failure.empty()) on.part = part_of(opened.arena, places.node, marks);
  return on;
}

}  // namespace stratagem
