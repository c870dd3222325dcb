#include "comm/mpi/operations.hpp"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

#include "base/arithmetic.hpp"
#include "base/contract.hpp"
#include "comm/communicator.hpp"
#include "comm/mpi/parts.hpp"
#include "comm/reduction.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t bytes_within_node = 1 << 18;  ///< of a piece: there asking is quick
constexpr int pieces_within_node = 2, pieces_between_nodes = SlicedCollective::tags / 2;

/// Slices start on cache lines, so that two ranks' sums never share one.
std::int64_t slice_of(at::Tensor const& tensor, int ranks) {
  std::int64_t const line = 64 / static_cast<std::int64_t>(tensor.element_size());
  return round_up(ceil_div(tensor.numel(), ranks), line);
}

std::span<std::byte> bytes(at::Tensor const& tensor) {
  return {data_of(tensor), static_cast<std::size_t>(bytes_of(tensor))};
}

std::vector<std::span<std::byte>> messages(at::Tensor const& tensor) {
  return parts_of(bytes(tensor), mpi::Comm::max_message);
}

}  // namespace

std::span<std::byte> Slices::part(int rank, std::int64_t begin, std::int64_t count) const {
  auto const end_of_slice = std::min((rank + 1) * slice, numel);
  auto const from = std::min(rank * slice + begin, end_of_slice);
  auto const to = std::min(from + count, end_of_slice);
  return {data + from * element_size, static_cast<std::size_t>((to - from) * element_size)};
}

std::string_view name_of(SlicedCollective::Kind kind) {
  using Kind = SlicedCollective::Kind;
  switch (kind) {
    case Kind::all_reduce:
      return "all_reduce";
    case Kind::reduce_scatter:
      return "reduce_scatter";
    case Kind::all_gather:
      return "all_gather";
  }
  return "";
}

Slices slices_of(SlicedCollective::Kind kind, at::Tensor const& input, at::Tensor const& output,
                 int ranks) {
  using Kind = SlicedCollective::Kind;
  auto const& whole = kind == Kind::all_gather ? output : input;
  auto const slice = kind == Kind::all_reduce ? slice_of(whole, ranks) : whole.numel() / ranks;
  return {bytes(whole).data(), whole.numel(), slice,
          static_cast<std::int64_t>(whole.element_size())};
}

SlicedCollective::SlicedCollective(mpi::Comm const& comm, Kind kind, at::Tensor input,
                                   at::Tensor output, int tag, bool several_nodes)
    : comm_(comm),
      kind_(kind),
      input_(std::move(input)),
      output_(std::move(output)),
      sliced_(slices_of(kind, input_, output_, comm.size())),
      piece_bytes_(several_nodes ? unasked_bytes : bytes_within_node),
      pieces_(several_nodes ? pieces_between_nodes : pieces_within_node) {
  own_ = kind == Kind::reduce_scatter
             ? bytes(output_).data()
             : sliced_.data + comm.rank() * sliced_.slice * sliced_.element_size;
  piece_ = std::max<std::int64_t>(piece_bytes_ / sliced_.element_size, 1);
  for (auto& piece : pieces_) piece.tag = std::exchange(tag, tag + 2);
}

std::string_view SlicedCollective::name() const {
  return name_of(kind_);
}

std::int64_t SlicedCollective::bytes_to_send() const {
  auto const own = static_cast<std::int64_t>(sliced_.part(comm_.rank(), 0, sliced_.slice).size());
  auto const others = sliced_.numel * sliced_.element_size - own;
  auto const gathered = own * (comm_.size() - 1);
  return (kind_ == Kind::all_gather ? 0 : others) + (kind_ == Kind::reduce_scatter ? 0 : gathered);
}

Operation::State SlicedCollective::advance() {
  bool moved = !std::exchange(started_, true);
  if (moved && kind_ == Kind::all_gather && bytes(input_).data() != own_)
    std::ranges::copy(bytes(input_), own_);
  bool busy = false;
  for (auto& piece : pieces_) {
    if (piece.state != Piece::State::idle) moved = advance(piece) || moved;
    // All ranks put the pieces into the places in the same order, so messages of a place stay in
    // order.
    bool const its_turn =
        &piece == &pieces_[static_cast<std::size_t>(next_ / piece_) % pieces_.size()];
    if (piece.state == Piece::State::idle && its_turn && next_ < sliced_.slice) {
      piece.begin = std::exchange(next_, next_ + piece_);
      start(piece);
      moved = true;
    }
    busy = busy || piece.state != Piece::State::idle;
  }
  if (!busy && next_ >= sliced_.slice) return State::finished;
  return moved ? State::moved : State::stuck;
}

std::int64_t SlicedCollective::in_flight() const {
  return static_cast<std::int64_t>(pieces_.size()) * comm_.size() * piece_bytes_;
}

void SlicedCollective::start(Piece& piece) {
  if (kind_ == Kind::all_gather)
    gather(piece);
  else
    exchange(piece);
}

bool SlicedCollective::advance(Piece& piece) {
  if (!mpi::test_all(piece.requests)) return false;
  piece.requests.clear();
  bool const reduces = piece.state == Piece::State::exchanging;
  piece.state = Piece::State::idle;
  if (reduces) reduce(piece);
  if (reduces && kind_ == Kind::all_reduce) gather(piece);
  return true;
}

void SlicedCollective::exchange(Piece& piece) {
  piece.state = Piece::State::exchanging;
  auto const own = sliced_.part(comm_.rank(), piece.begin, piece_).size();
  auto const others = static_cast<std::size_t>(comm_.size() - 1);
  // The first piece is the largest. Where sizes differ, Open MPI 4.1 writes a message that is too
  // long as a whole before it says so: there is room for the longest.
  if (!piece.scratch)
    piece.scratch = std::make_unique_for_overwrite<std::byte[]>(
        own * others + static_cast<std::size_t>(piece_bytes_));
  std::size_t place = 0;
  for (int peer = 0; peer < comm_.size(); ++peer) {
    if (peer == comm_.rank()) continue;
    std::span const into(piece.scratch.get() + own * place++, own);
    piece.requests.push_back(comm_.receive(into, peer, piece.tag));
    piece.requests.push_back(comm_.send(sliced_.part(peer, piece.begin, piece_), peer, piece.tag));
  }
}

void SlicedCollective::reduce(Piece& piece) {
  auto const own = sliced_.part(comm_.rank(), piece.begin, piece_);
  std::vector<std::byte const*> versions;
  std::size_t place = 0;
  for (int rank = 0; rank < comm_.size(); ++rank)
    versions.push_back(rank == comm_.rank() ? own.data()
                                            : piece.scratch.get() + own.size() * place++);
  auto const count = static_cast<std::int64_t>(own.size()) / sliced_.element_size;
  sum_in_order(versions, own_ + piece.begin * sliced_.element_size, count, input_.scalar_type());
}

void SlicedCollective::gather(Piece& piece) {
  piece.state = Piece::State::gathering;
  auto const own = sliced_.part(comm_.rank(), piece.begin, piece_);
  for (int peer = 0; peer < comm_.size(); ++peer) {
    if (peer == comm_.rank()) continue;
    auto const theirs = sliced_.part(peer, piece.begin, piece_);
    piece.requests.push_back(comm_.receive(theirs, peer, piece.tag + 1));
    piece.requests.push_back(comm_.send(own, peer, piece.tag + 1));
  }
}

Broadcast::Broadcast(mpi::Comm const& comm, at::Tensor tensor, int root, int tag)
    : comm_(comm), tensor_(std::move(tensor)), parent_(-1), tag_(tag) {
  int const size = comm.size(), place = (comm.rank() - root + size) % size;
  int bit = 1;
  for (; bit < size && (place & bit) == 0; bit <<= 1) {
  }
  if (place != 0) parent_ = (place - bit + root) % size;
  for (bit >>= 1; bit > 0; bit >>= 1)
    if (place + bit < size) children_.push_back((place + bit + root) % size);
}

std::int64_t Broadcast::bytes_to_send() const {
  return bytes_of(tensor_) * static_cast<std::int64_t>(children_.size());
}

std::int64_t Broadcast::in_flight() const {
  return bytes_of(tensor_);
}

Operation::State Broadcast::advance() {
  if (stage_ == Stage::idle) {
    stage_ = Stage::receiving;
    if (parent_ >= 0)
      for (auto const part : messages(tensor_))
        requests_.push_back(comm_.receive(part, parent_, tag_));
  }
  if (!mpi::test_all(requests_)) return State::stuck;
  requests_.clear();
  if (stage_ == Stage::sending) return State::finished;
  stage_ = Stage::sending;
  for (int child : children_)
    for (auto const part : messages(tensor_)) requests_.push_back(comm_.send(part, child, tag_));
  return requests_.empty() ? State::finished : State::moved;
}

Operation::State Barrier::advance() {
  while (mpi::test_all(requests_)) {
    requests_.clear();
    distance_ = distance_ == 0 ? 1 : 2 * distance_;
    if (distance_ >= comm_.size()) return State::finished;
    int const before = (comm_.rank() - distance_ + comm_.size()) % comm_.size();
    requests_.push_back(comm_.receive({}, before, tag_));
    requests_.push_back(comm_.send({}, (comm_.rank() + distance_) % comm_.size(), tag_));
  }
  return State::stuck;
}

std::int64_t PointToPoint::in_flight() const {
  return bytes_of(tensor_);
}

Operation::State PointToPoint::advance() {
  if (!std::exchange(started_, true)) {
    for (auto const part : messages(tensor_))
      requests_.push_back(direction_ == Direction::send ? comm_.send(part, peer_, tag_)
                                                        : comm_.receive(part, peer_, tag_));
  }
  return mpi::test_all(requests_) ? State::finished : State::stuck;
}

}  // namespace stratagem
