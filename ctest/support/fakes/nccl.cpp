// The functions of NCCL that lib/comm/nccl uses, between processes of one host, on host memory:
// each rank copies a piece into its slot of a shared segment, all meet, and each takes what it
// needs. Sums are in rank order. Linked into a test program, they come before those of libnccl.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <nccl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "comm/reduction.hpp"
#include "support/fakes/faults.hpp"

namespace {

using stratagem::test::faults;

constexpr int max_ranks = 8;
constexpr std::size_t piece_bytes = 1 << 18;

/// Zeroed memory is its right start.
struct Segment {
  std::atomic<int> arrived;
  std::atomic<int> round;
  std::atomic<int> attached;
  std::byte slots[max_ranks][piece_bytes];
};

at::ScalarType element(ncclDataType_t type) {
  switch (type) {
    case ncclFloat32:
      return at::kFloat;
    case ncclFloat64:
      return at::kDouble;
    case ncclFloat16:
      return at::kHalf;
    case ncclBfloat16:
      return at::kBFloat16;
    case ncclInt64:
      return at::kLong;
    case ncclInt32:
      return at::kInt;
    default:
      return at::kByte;
  }
}

}  // namespace

/// What an ncclComm_t points to.
struct ncclComm {
  Segment* segment;
  int rank;
  int ranks;
  int pending_polls = 2;  ///< the start, too, is asynchronous

  void meet() {
    int const round = segment->round.load();
    if (segment->arrived.fetch_add(1) + 1 == ranks) {
      segment->arrived.store(0);
      segment->round.fetch_add(1);
    } else {
      while (segment->round.load() == round) std::this_thread::yield();
    }
  }
};

namespace {

/// All ranks bring `mine` (some bring nothing) and `take` what they need of the others' slots,
/// given the place and length of the piece.
template <class Take>
void exchange(ncclComm& comm, void const* mine, std::size_t bytes, Take take) {
  for (std::size_t at = 0; at < bytes; at += piece_bytes) {
    auto const length = std::min(piece_bytes, bytes - at);
    if (mine != nullptr)
      std::memcpy(comm.segment->slots[comm.rank], static_cast<std::byte const*>(mine) + at, length);
    comm.meet();
    take(at, length);
    comm.meet();
  }
}

/// `out` <- the sum of what all ranks bring; ranks that pass no `out` only bring.
void reduce(ncclComm& comm, void const* mine, void* out, std::size_t count, ncclDataType_t type) {
  auto const size = at::elementSize(element(type));
  std::vector<std::byte const*> sources;
  for (int rank = 0; rank < comm.ranks; ++rank) sources.push_back(comm.segment->slots[rank]);
  exchange(comm, mine, count * size, [&](std::size_t at, std::size_t length) {
    if (out != nullptr)
      stratagem::sum_in_order(sources, static_cast<std::byte*>(out) + at,
                              static_cast<std::int64_t>(length / size), element(type));
  });
}

}  // namespace

extern "C" {

char const* ncclGetErrorString(ncclResult_t) {
  return "an error of the fake NCCL";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> next = 0;
  std::snprintf(id->internal, sizeof(id->internal), "/fake-nccl-%d-%d", ::getpid(), next++);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (faults().nccl_start != 0) return static_cast<ncclResult_t>(faults().nccl_start);
  if (ranks > max_ranks || config->blocking != 0) return ncclInvalidArgument;
  int const file = ::shm_open(id.internal, O_CREAT | O_RDWR, 0600);
  if (file < 0 || ::ftruncate(file, sizeof(Segment)) != 0) return ncclSystemError;
  void* memory = ::mmap(nullptr, sizeof(Segment), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (memory == MAP_FAILED) return ncclSystemError;
  *comm = new ncclComm{static_cast<Segment*>(memory), rank, ranks};
  if ((*comm)->segment->attached.fetch_add(1) + 1 == ranks) ::shm_unlink(id.internal);
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* result) {
  *result = static_cast<ncclResult_t>(faults().nccl_asynchronous);
  if (comm->pending_polls > 0 && comm->pending_polls-- > 1) *result = ncclInProgress;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t) {
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  ::munmap(comm->segment, sizeof(Segment));
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  ++faults().aborts;
  return ncclCommDestroy(comm);
}

ncclResult_t ncclAllReduce(void const* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t, ncclComm_t comm, cudaStream_t) {
  reduce(*comm, from, to, count, type);
  return ncclSuccess;
}

ncclResult_t ncclReduceScatter(void const* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t, ncclComm_t comm, cudaStream_t) {
  auto const part = count * at::elementSize(element(type));
  for (int rank = 0; rank < comm->ranks; ++rank)
    reduce(*comm, static_cast<std::byte const*>(from) + static_cast<std::size_t>(rank) * part,
           rank == comm->rank ? to : nullptr, count, type);
  return ncclSuccess;
}

ncclResult_t ncclAllGather(void const* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t) {
  auto const part = count * at::elementSize(element(type));
  exchange(*comm, from, part, [&](std::size_t at, std::size_t length) {
    for (int rank = 0; rank < comm->ranks; ++rank)
      std::memcpy(static_cast<std::byte*>(to) + static_cast<std::size_t>(rank) * part + at,
                  comm->segment->slots[rank], length);
  });
  return ncclSuccess;
}

ncclResult_t ncclBroadcast(void const* from, void* to, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t) {
  auto const bytes = count * at::elementSize(element(type));
  exchange(*comm, comm->rank == root ? from : nullptr, bytes,
           [&](std::size_t at, std::size_t length) {
             std::memcpy(static_cast<std::byte*>(to) + at, comm->segment->slots[root], length);
           });
  return ncclSuccess;
}

}  // extern "C"
