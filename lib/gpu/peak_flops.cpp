#include "gpu/peak_flops.hpp"

#include <array>
#include <utility>

namespace stratagem::gpu {

std::optional<double> peak_flops_of_16_bit(std::string_view name) {
  // The first that is part of the name counts.
  static constexpr std::array<std::pair<std::string_view, double>, 6> known{{{"H100 PCIe", 756e12},
                                                                             {"H100 NVL", 835e12},
                                                                             {"H100", 989e12},
                                                                             {"H200", 989e12},
                                                                             {"A100", 312e12},
                                                                             {"V100", 125e12}}};
  for (auto const& [part, flops] : known)
    if (name.find(part) != name.npos) return flops;
  return std::nullopt;
}

}  // namespace stratagem::gpu
