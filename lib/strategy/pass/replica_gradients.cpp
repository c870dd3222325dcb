#include "strategy/pass/replica_gradients.hpp"

#include <utility>

namespace stratagem {

ReplicaGradients::ReplicaGradients(Replica const& replica, at::Tensor flat)
    : replica_(replica), flat_(std::move(flat)) {
  for (int block = 0; block < replica.layout().blocks(); ++block)
    views_.push_back(views_of(flat_, replica.layout(), block));
}

}  // namespace stratagem
