#include "gpu/branch.hpp"

namespace stratagem::gpu {

bool Branch::possible(Device const&) {
  return false;
}
void Branch::run(Device const&, std::vector<at::Tensor> const&, std::function<void()> const& body) {
  body();
}
void Branch::join() {}

}  // namespace stratagem::gpu
