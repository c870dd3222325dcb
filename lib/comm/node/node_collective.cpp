#include "comm/node/node_collective.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/reduction.hpp"

namespace stratagem {

NodeCollective::NodeCollective(NodeGroup const& group, Kind kind, at::Tensor input,
                               at::Tensor output, std::uint64_t number,
                               std::unique_ptr<Operation> messages)
    : NodeOperation(group, kind, std::move(input), std::move(output), number),
      messages_(std::move(messages)),
      sliced_(slices_of(kind, this->input(), this->output(), group.size())) {}

/// What the others read of this rank: after this, it is in the arena if it can be.
std::optional<std::int64_t> NodeCollective::place() {
  auto const place = group().place_of(input().data_ptr());
  if (place || kind() != Kind::all_gather) return place;
  auto* const part = sliced_.part(group().rank(), 0, sliced_.slice).data();
  auto const gathered = group().place_of(part);
  if (gathered) std::copy_n(data_of(input()), bytes_of(input()), part);
  return gathered;
}

Operation::State NodeCollective::move() {
  if (!all_in_arena()) return messages_->advance();
  if (next_ >= sliced_.slice) return State::finished;
  auto const count = std::max<std::int64_t>(piece_bytes / sliced_.element_size, 1);
  auto const begin = std::exchange(next_, next_ + count);
  if (kind() == Kind::all_gather)
    gather_piece(begin, count);
  else
    sum_piece(begin, count);
  return next_ < sliced_.slice ? State::moved : State::finished;
}

/// Read from all, in rank order, and written to this rank, or to all.
void NodeCollective::sum_piece(std::int64_t begin, std::int64_t count) {
  auto const own = sliced_.part(group().rank(), begin, count);
  if (own.empty()) return;
  auto const offset = own.data() - sliced_.data;
  std::vector<std::byte const*> versions;
  for (int rank = 0; rank < group().size(); ++rank) versions.push_back(tensor_of(rank) + offset);
  auto* const sum =
      kind() == Kind::all_reduce ? own.data() : data_of(output()) + begin * sliced_.element_size;
  sum_in_order(versions, sum, static_cast<std::int64_t>(own.size()) / sliced_.element_size,
               input().scalar_type());
  if (kind() != Kind::all_reduce) return;
  for (int rank = 0; rank < group().size(); ++rank)
    if (rank != group().rank()) std::ranges::copy(own, tensor_of(rank) + offset);
}

void NodeCollective::gather_piece(std::int64_t begin, std::int64_t count) {
  for (int rank = 0; rank < group().size(); ++rank) {
    auto const part = sliced_.part(rank, begin, count);
    auto const* const from = tensor_of(rank) + begin * sliced_.element_size;
    if (from != part.data()) std::copy_n(from, part.size(), part.data());
  }
}

}  // namespace stratagem
