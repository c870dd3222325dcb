#include "mpi/node_memory.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>

#include "base/error.hpp"
#include "base/text.hpp"
#include "mpi/comm_shared.hpp"
#include "mpi/error.hpp"

namespace stratagem::mpi {
namespace {

constexpr std::size_t line = 64;

}  // namespace

struct NodeMemory::Handle {
  std::shared_ptr<Comm::Shared const> node;
  MPI_Win window = MPI_WIN_NULL;
};

NodeMemory::NodeMemory(Comm const& node, std::size_t bytes)
    : handle_(std::make_unique<Handle>()), bytes_(bytes) {
  auto const room = (bytes + 2 * line - 1) / line * line;
  void* base = nullptr;
  handle_->node = node.shared_;
  auto const allocate = [&] {
    auto const wait = node.shared_->wait("MPI_Win_allocate_shared");
    return MPI_Win_allocate_shared(static_cast<MPI_Aint>(room), 1, MPI_INFO_NULL,
                                   node.shared_->handle, &base, &handle_->window);
  };
  if (allocate() != MPI_SUCCESS)
    throw Error(ExitCode::environment,
                str("MPI cannot share ", bytes, " bytes between the ranks of a node"), {},
                "make /dev/shm larger");
  std::ranges::fill(part(node.rank()), std::byte{0});
  node.barrier();
}

NodeMemory::~NodeMemory() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized != 0 || std::uncaught_exceptions() > 0) return;
  auto const wait = handle_->node->wait("MPI_Win_free");
  MPI_Win_free(&handle_->window);
}

std::span<std::byte> NodeMemory::part(int rank) const {
  MPI_Aint size = 0;
  int unit = 0;
  void* base = nullptr;
  check(MPI_Win_shared_query(handle_->window, rank, &size, &unit, &base), "MPI_Win_shared_query");
  auto const address = reinterpret_cast<std::uintptr_t>(base);
  return {static_cast<std::byte*>(base) + (line - address % line) % line, bytes_};
}

}  // namespace stratagem::mpi
