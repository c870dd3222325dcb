#include "mpi/window.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <numeric>
#include <string>

#include "base/contract.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "mpi/comm_shared.hpp"
#include "mpi/error.hpp"

namespace stratagem::mpi {
namespace {

constexpr std::size_t page = 4096;
constexpr char const* shared_memory = "/dev/shm";

std::vector<std::size_t> all_gather_sizes(Comm const& comm, std::size_t own) {
  std::vector<std::size_t> sizes;
  for (auto const& text : comm.all_gather(std::to_string(own)))
    sizes.push_back(static_cast<std::size_t>(*parse_integer(text)));
  return sizes;
}

/// Throws the first text that is not empty, on all ranks.
void agree_on(Comm const& comm, std::string const& own, char const* cure) {
  for (auto const& text : comm.all_gather(own))
    if (!text.empty()) throw Error(ExitCode::environment, text, "transport rma needs it", cure);
}

/// Ranks of one node get their windows from its shared memory. If that is too small, there is no
/// error: the first access beyond it kills the rank.
void check_room(Comm const& comm, std::size_t bytes) {
  auto const sizes = all_gather_sizes(comm.split_node(), bytes);
  auto const need = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
  std::error_code failed;
  auto const room = std::filesystem::space(shared_memory, failed).available;
  std::string problem;
  if (!failed && need > room)
    problem = str(shared_memory, " has room for ", format_bytes(static_cast<double>(room)),
                  ", the windows of this node need ", format_bytes(static_cast<double>(need)));
  agree_on(comm, problem, "make it larger, or take strategy.transport: two_sided");
}

}  // namespace

struct Window::Handle {
  std::shared_ptr<Comm::Shared const> comm;
  MPI_Win window = MPI_WIN_NULL;
};

Window::Window(Comm const& comm, std::size_t bytes) : handle_(std::make_unique<Handle>()) {
  check_room(comm, bytes);
  void* base = nullptr;
  auto const room = bytes > 0 ? bytes + page : 0;
  handle_->comm = comm.shared_;
  auto const allocate = [&] {
    auto const wait = comm.shared_->wait("MPI_Win_allocate");
    return MPI_Win_allocate(static_cast<MPI_Aint>(room), 1, MPI_INFO_NULL, comm.shared_->handle,
                            &base, &handle_->window);
  };
  int const code = allocate();
  std::string problem;
  if (code != MPI_SUCCESS) {
    problem = str("MPI cannot make a window of ", format_bytes(static_cast<double>(bytes)));
  } else {
    int* model = nullptr;
    int found = 0;
    MPI_Win_get_attr(handle_->window, MPI_WIN_MODEL, &model, &found);
    if (found == 0 || *model != MPI_WIN_UNIFIED) problem = "MPI's windows have a copy of their own";
  }
  agree_on(comm, problem, "choose another component with OMPI_MCA_osc, or take two_sided");
  MPI_Win_set_errhandler(handle_->window, MPI_ERRORS_RETURN);
  auto const address = reinterpret_cast<std::uintptr_t>(base);
  auto const begin = bytes > 0 ? (page - address % page) % page : 0;
  local_ = {static_cast<std::byte*>(base) + begin, bytes};
  std::ranges::fill(local_, std::byte{0});
  begins_ = all_gather_sizes(comm, begin);
  check(MPI_Win_lock_all(MPI_MODE_NOCHECK, handle_->window), "MPI_Win_lock_all");
}

Window::~Window() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized != 0 || std::uncaught_exceptions() > 0) return;
  auto const wait = handle_->comm->wait("MPI_Win_free");
  MPI_Win_unlock_all(handle_->window);
  MPI_Win_free(&handle_->window);
}

void Window::put(std::span<std::byte const> bytes, int peer, std::size_t offset) const {
  expects(bytes.size() <= Comm::max_message, "messages within bounds");
  auto const count = static_cast<int>(bytes.size());
  auto const place = static_cast<MPI_Aint>(begins_[static_cast<std::size_t>(peer)] + offset);
  check(MPI_Put(bytes.data(), count, MPI_BYTE, peer, place, count, MPI_BYTE, handle_->window),
        "MPI_Put");
}

void Window::get(std::span<std::byte> bytes, int peer, std::size_t offset) const {
  expects(bytes.size() <= Comm::max_message, "messages within bounds");
  auto const count = static_cast<int>(bytes.size());
  auto const place = static_cast<MPI_Aint>(begins_[static_cast<std::size_t>(peer)] + offset);
  check(MPI_Get(bytes.data(), count, MPI_BYTE, peer, place, count, MPI_BYTE, handle_->window),
        "MPI_Get");
}

void Window::flush(int peer) const {
  check(MPI_Win_flush(peer, handle_->window), "MPI_Win_flush");
}

void Window::synchronise() const {
  check(MPI_Win_sync(handle_->window), "MPI_Win_sync");
}

}  // namespace stratagem::mpi
