#include "train/final_parameters.hpp"

#include "comm/agreement.hpp"
#include "gpu/memory.hpp"
#include "model/weights.hpp"
#include "strategy/state/buffers.hpp"
#include "strategy/state/named_tensors.hpp"
#include "train/checkpoint/writer.hpp"

namespace stratagem {

std::string digest_of_parameters(Communicator& communicator, State const& state, Model const& model,
                                 StrategyPlan const& plan) {
  gpu::MemoryScope const scope(gpu::MemoryCategory::workspace);
  auto const dealt = deal_tensors(model, plan.saved.holders);
  auto const mine = [&](std::string const& name) { return dealt.at(name) == communicator.rank(); };
  return digest_of(communicator, gather(state, State::parameters, model, mine, communicator));
}

std::optional<Error> save_weights(std::filesystem::path const& file, Communicator& communicator,
                                  State const& state, Model const& model,
                                  StrategyPlan const& plan) {
  bool const holds = communicator.rank() == plan.saved.holders.front();
  auto const wanted = [holds](std::string const&) { return holds; };
  auto const parameters = gather(state, State::parameters, model, wanted, communicator);
  auto const statistics = average(state.buffers, communicator);
  std::string problem;
  if (holds) {
    TensorMap tensors(parameters.begin(), parameters.end());
    for (auto const& [name, tensor] : named(model, statistics)) tensors.emplace(name, tensor);
    NamedTensors ordered;
    for (auto const& each : state_of(model)) ordered.emplace_back(each.name, tensors.at(each.name));
    try {
      write_weights(file, model, ordered);
    } catch (Error const& failure) {
      problem = failure.what();
    }
  }
  for (auto const& text : gather_texts(communicator, problem))
    if (!text.empty()) return Error(ExitCode::io, text);
  return std::nullopt;
}

}  // namespace stratagem
