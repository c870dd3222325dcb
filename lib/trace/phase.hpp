#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace stratagem::trace {

/// What the compute stream is doing. A step is divided into phases without gaps.
enum class Phase {
  data,  ///< waiting for the batch, and copying it to the device
  forward,
  backward,
  comm_exposed,  ///< waiting for communication that computation did not hide
  optimizer,
};

inline constexpr std::size_t phases = 5;
inline constexpr std::array<std::string_view, phases> phase_names{"data", "forward", "backward",
                                                                  "comm_exposed", "optimizer"};

/// Rows of a timeline.
enum class Lane { compute, comm, loader };

inline constexpr std::size_t lanes = 3;
inline constexpr std::array<std::string_view, lanes> lane_names{"compute", "comm", "loader"};

}  // namespace stratagem::trace
