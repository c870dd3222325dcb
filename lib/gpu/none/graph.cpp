#include "gpu/graph.hpp"

#include "base/contract.hpp"

namespace stratagem::gpu {

struct Graph::Impl {};

bool Graph::possible(Device const&) {
  return false;
}

Graph::Graph(Device const&, std::function<void()> const&) {
  expects(false, "a GPU, which this build does not use");
}

Graph::~Graph() = default;

void Graph::launch(std::span<void* const>, std::span<void* const>) const {}

std::int64_t Graph::nodes() const {
  return 0;
}
std::int64_t Graph::reserved_bytes() const {
  return 0;
}

}  // namespace stratagem::gpu
