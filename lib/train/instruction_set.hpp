#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mpi/comm.hpp"

namespace stratagem {

/// What the environment says to the libraries that compute on CPUs about the kernels to take, such
/// as "MKL_CBWR=COMPATIBLE"; empty for nothing.
std::string kernel_settings();

/// By what kernels are chosen here: LibTorch's capability, kernel_settings(), and the processor's
/// vendor and wide instructions, with spaces between them.
std::string instruction_set();

/// Names ranks that compute with other instructions than the first that computes, and what they
/// have instead: their numbers may differ in the last bits. Nothing where all are alike.
/// Collective.
std::optional<std::string> mixed_instructions(mpi::Comm const& world, bool computes);

/// The same of what each rank has; empty for a rank that does not compute.
std::optional<std::string> mixed_instructions(std::vector<std::string> const& by_rank);

}  // namespace stratagem
