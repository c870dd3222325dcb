#pragma once

#include <array>
#include <string>
#include <string_view>

namespace stratagem {

/// How training samples are dealt to clients.
enum class Split {
  iid,       ///< at random, equally many each
  shards,    ///< sorted by label and cut; two pieces each (McMahan et al. 2017, arXiv 1602.05629)
  dirichlet  ///< of each label, shares from Dirichlet(alpha) (Yurochkin et al. 2019, 1905.12022)
};

inline constexpr std::array<std::string_view, 3> split_names{"iid", "shards", "dirichlet"};
inline std::string name_of(Split split) {
  return std::string(split_names[static_cast<std::size_t>(split)]);
}

/// Clients, each with training samples of its own, of which a few train in a round.
struct ClientConfig {
  int clients = 100;
  int per_round = 1;
  Split split = Split::iid;
  double alpha = 1;  ///< of Split::dirichlet

  bool needs_labels() const { return split != Split::iid; }
};

}  // namespace stratagem
