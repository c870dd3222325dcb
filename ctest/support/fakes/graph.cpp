#include "gpu/graph.hpp"

#include "base/contract.hpp"

namespace stratagem::gpu {

/// What a graph keeps, it does again: what its body reads of the step in which it was made, instead
/// of the memory that the graph reads, changes the results of the steps that follow.
struct Graph::Impl {
  std::function<void()> body;
};

bool Graph::possible(Device const&) {
  return true;
}

Graph::Graph(Device const&, std::function<void()> const& body) : impl_(new Impl{body}) {}

Graph::~Graph() = default;

void Graph::launch(std::span<void* const> kept, std::span<void* const> marks) const {
  expects(kept.size() == marks.size(), "a mark for each that is kept");
  impl_->body();
}

std::int64_t Graph::nodes() const {
  return 1;
}
std::int64_t Graph::reserved_bytes() const {
  return 0;
}

}  // namespace stratagem::gpu
