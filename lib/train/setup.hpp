#pragma once

#include <optional>
#include <type_traits>

#include "base/log.hpp"
#include "comm/agreement.hpp"
#include "comm/process_info.hpp"
#include "data/dataset.hpp"
#include "model/safetensors.hpp"
#include "mpi/comm.hpp"
#include "train/run_plan.hpp"

namespace stratagem {

/// What `make` returns; when it fails on some rank, all ranks throw the joint AgreedError.
/// Collective.
template <class Make>
auto on_all_ranks(mpi::Comm const& world, Make make) {
  std::optional<std::invoke_result_t<Make>> made;
  std::optional<Error> own;
  try {
    made.emplace(make());
  } catch (Error const& error) {
    own = error;
  } catch (std::exception const& error) {
    own = Error(ExitCode::unexpected, error.what());
  }
  agree(world, own);
  return std::move(*made);
}

/// Everything that is known of a run before it writes anything.
struct Setup {
  ProcessInfo process;
  int threads;  ///< of LibTorch, per rank; already set
  Model model;
  Dataset dataset;
  TensorMap weights;  ///< of model.weights; empty where none is named
  RunPlan plan;
};

/// Chooses device and threads, reads data and weights, makes the plan. Whatever does not fit, on
/// any rank, is an AgreedError. Collective over `world`.
Setup set_up(RunConfig const& config, mpi::Comm const& world, Log& log);

}  // namespace stratagem
