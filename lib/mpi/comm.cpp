#include "mpi/comm.hpp"

#include "base/contract.hpp"
#include "mpi/comm_shared.hpp"
#include "mpi/error.hpp"
#include "mpi/handle.hpp"

namespace stratagem::mpi {

Comm::Shared::~Shared() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (owned && finalized == 0) MPI_Comm_free(&handle);
}

Comm::Comm(std::shared_ptr<Shared const> shared) : shared_(std::move(shared)) {
  check(MPI_Comm_rank(shared_->handle, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(shared_->handle, &size_), "MPI_Comm_size");
}

Comm Comm::split_node() const {
  MPI_Comm node = MPI_COMM_NULL;
  auto const wait = shared_->wait("MPI_Comm_split_type");
  check(MPI_Comm_split_type(shared_->handle, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node),
        "MPI_Comm_split_type");
  return Comm(std::make_shared<Shared>(node, true, shared_->patience));
}

Comm Comm::split(int group) const {
  MPI_Comm part = MPI_COMM_NULL;
  auto const wait = shared_->wait("MPI_Comm_split");
  check(MPI_Comm_split(shared_->handle, group, rank_, &part), "MPI_Comm_split");
  return Comm(std::make_shared<Shared>(part, true, shared_->patience));
}

Comm Comm::duplicate() const {
  return duplicate(true);
}

Comm Comm::duplicate_for_good() const {
  return duplicate(false);
}

Comm Comm::duplicate(bool owned) const {
  MPI_Comm copy = MPI_COMM_NULL;
  auto const wait = shared_->wait("MPI_Comm_dup");
  check(MPI_Comm_dup(shared_->handle, &copy), "MPI_Comm_dup");
  return Comm(std::make_shared<Shared>(copy, owned, shared_->patience));
}

void Comm::barrier() const {
  auto const wait = shared_->wait("MPI_Barrier");
  check(MPI_Barrier(shared_->handle), "MPI_Barrier");
}

void Comm::broadcast(std::string& text, int root) const {
  auto length = static_cast<std::int64_t>(text.size());
  auto const wait = shared_->wait("MPI_Bcast");
  check(MPI_Bcast(&length, 1, MPI_INT64_T, root, shared_->handle), "MPI_Bcast");
  expects(length <= static_cast<std::int64_t>(max_message), "texts are small");
  text.resize(static_cast<std::size_t>(length));
  check(MPI_Bcast(text.data(), static_cast<int>(length), MPI_CHAR, root, shared_->handle),
        "MPI_Bcast");
}

std::vector<std::string> Comm::all_gather(std::string const& text) const {
  auto const count = static_cast<std::size_t>(size_);
  int const length = static_cast<int>(text.size());
  std::vector<int> lengths(count), offsets(count);
  auto const wait = shared_->wait("MPI_Allgather");
  check(MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, shared_->handle),
        "MPI_Allgather");
  for (std::size_t i = 1; i < count; ++i) offsets[i] = offsets[i - 1] + lengths[i - 1];
  std::string joined(static_cast<std::size_t>(offsets.back() + lengths.back()), '\0');
  check(MPI_Allgatherv(text.data(), length, MPI_CHAR, joined.data(), lengths.data(), offsets.data(),
                       MPI_CHAR, shared_->handle),
        "MPI_Allgatherv");
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i)
    texts.push_back(
        joined.substr(static_cast<std::size_t>(offsets[i]), static_cast<std::size_t>(lengths[i])));
  return texts;
}

void Comm::library_all_reduce(std::span<float> values) const {
  auto const wait = shared_->wait("MPI_Allreduce");
  check(MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT,
                      MPI_SUM, shared_->handle),
        "MPI_Allreduce");
}

Request Comm::send(std::span<std::byte const> bytes, int peer, int tag) const {
  expects(bytes.size() <= max_message && tag >= 0 && tag <= max_tag,
          "message and tag within bounds");
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, peer, tag,
                  shared_->handle, &request),
        "MPI_Isend");
  return {to_word(request), Request::is_sent};
}

Request Comm::receive(std::span<std::byte> bytes, int peer, int tag) const {
  expects(bytes.size() <= max_message && tag >= 0 && tag <= max_tag,
          "message and tag within bounds");
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Irecv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, peer, tag,
                  shared_->handle, &request),
        "MPI_Irecv");
  return {to_word(request), static_cast<int>(bytes.size())};
}

bool Comm::has_message(int tag) const {
  int found = 0;
  check(MPI_Iprobe(MPI_ANY_SOURCE, tag, shared_->handle, &found, MPI_STATUS_IGNORE), "MPI_Iprobe");
  return found != 0;
}

}  // namespace stratagem::mpi
