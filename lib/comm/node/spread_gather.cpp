#include "comm/node/spread_gather.hpp"

#include <algorithm>
#include <utility>

#include "base/arithmetic.hpp"
#include "comm/communicator.hpp"

namespace stratagem {

SpreadGather::SpreadGather(mpi::Comm const& comm, NodeGroup const& group, at::Tensor input,
                           at::Tensor output, std::uint64_t number, int tag)
    : NodeOperation(group, Kind::all_gather, std::move(input), std::move(output), number),
      comm_(comm),
      shared_(group.room_for(this->output())),
      nodes_(comm.size() / group.size()),
      node_(comm.rank() / group.size()),
      tag_(tag),
      sliced_(slices_of(Kind::all_gather, this->input(), shared_, comm.size())),
      piece_(std::max<std::int64_t>(piece_bytes / sliced_.element_size, 1)),
      pieces_(ceil_div(sliced_.slice, piece_)),
      copied_(static_cast<std::size_t>(group.size()), 0) {
  copied_[static_cast<std::size_t>(group.rank())] = pieces_;
}

std::optional<std::int64_t> SpreadGather::place() {
  auto* const own = sliced_.part(comm_.rank(), 0, sliced_.slice).data();
  if (own != data_of(input())) std::copy_n(data_of(input()), bytes_of(input()), own);
  return group().place_of(shared_.data_ptr());
}

void SpreadGather::end() {
  if (shared_.data_ptr() != output().data_ptr())
    std::copy_n(data_of(shared_), bytes_of(shared_), data_of(output()));
}

Operation::State SpreadGather::move() {
  bool moved = false;
  while (!under_way_.empty() && mpi::test_all(under_way_.front())) {
    under_way_.pop_front();
    publish(++exchanged_);
    moved = true;
  }
  auto const begun = exchanged_ + static_cast<std::int64_t>(under_way_.size());
  if (begun < pieces_ && under_way_.size() < most_under_way) {
    exchange(begun);
    moved = true;
  }
  bool complete = exchanged_ == pieces_;
  for (int rank = 0; rank < group().size(); ++rank) {
    auto& copied = copied_[static_cast<std::size_t>(rank)];
    if (copied < pieces_ && copied < published(rank)) {
      copy(rank, copied++);
      moved = true;
    }
    complete = complete && copied == pieces_;
  }
  if (complete) return State::finished;
  return moved ? State::moved : State::stuck;
}

void SpreadGather::exchange(std::int64_t piece) {
  auto& requests = under_way_.emplace_back();
  for (int node = 0; node < nodes_; ++node) {
    if (node == node_) continue;
    auto const peer = node * group().size() + group().rank();
    requests.push_back(comm_.receive(part(node, group().rank(), piece), peer, tag_));
    requests.push_back(comm_.send(part(node_, group().rank(), piece), peer, tag_));
  }
}

void SpreadGather::copy(int rank, std::int64_t piece) {
  for (int node = 0; node < nodes_; ++node) {
    auto const to = part(node, rank, piece);
    std::copy_n(tensor_of(rank) + (to.data() - sliced_.data), to.size(), to.data());
  }
}

std::span<std::byte> SpreadGather::part(int node, int rank, std::int64_t piece) const {
  return sliced_.part(node * group().size() + rank, piece * piece_, piece_);
}

}  // namespace stratagem
