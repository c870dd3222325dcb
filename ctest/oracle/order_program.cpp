#include <cstdio>
#include <cstdlib>

#include "data/sampler.hpp"

/// order_program SEED EPOCH IMAGES: the order in which an epoch visits the training images, a line
/// each.
int main(int argc, char** argv) {
  if (argc != 4) return 2;
  auto const order = stratagem::epoch_order(std::strtoull(argv[1], nullptr, 10),
                                            std::atoll(argv[2]), std::atoll(argv[3]));
  for (auto const image : order) std::printf("%lld\n", static_cast<long long>(image));
}
