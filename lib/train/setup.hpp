#pragma once

#include <optional>
#include <string>
#include <type_traits>

#include "base/log.hpp"
#include "comm/agreement.hpp"
#include "comm/process_info.hpp"
#include "data/dataset.hpp"
#include "model/safetensors.hpp"
#include "mpi/comm.hpp"
#include "train/failure.hpp"
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
  } catch (std::exception const& failure) {
    own = as_error(failure);
  }
  agree(world, own);
  return std::move(*made);
}

/// What rank 0 makes, on every rank; when it fails there, all ranks throw its error. Collective.
template <class Make>
std::string from_rank_0(mpi::Comm const& world, Make make) {
  std::string text;  // "0 result", or "code message"
  if (world.rank() == 0) {
    try {
      text = "0 " + make();
    } catch (std::exception const& failure) {
      auto const error = as_error(failure);
      text = std::to_string(to_int(error.code())) + " " + error.what();
    }
  }
  world.broadcast(text, 0);
  auto const space = text.find(' ');
  auto const code = static_cast<ExitCode>(std::stoi(text.substr(0, space)));
  text.erase(0, space + 1);
  if (code != ExitCode::done) throw AgreedError(code, text);
  return text;
}

/// Of the file that `config` names, matched to the model; empty where it names none.
TensorMap read_weights(ModelConfig const& config, Model const& model);

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
