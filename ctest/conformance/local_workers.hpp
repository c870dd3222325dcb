#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "conformance/training.hpp"

namespace stratagem::test {

/// Of what a training ends with whose workers step on their own, on every rank: the parameters of
/// all, what each worker has of its own and what is kept for all, and the mean of their running
/// statistics.
std::string digest_on(Training const& training, Communicator& communicator);
/// The same on one rank, which plays all workers.
std::string digest_alone(Training const& training);

NamedTensors mean_of(std::vector<NamedTensors> const& workers);
/// Of two elements in the same place.
double greatest_distance(NamedTensors const& a, NamedTensors const& b);

/// So many trainings of strategy serial, each on its part of the global batches. After each step,
/// and with -1 before the first, `exchange` sees the parameters of all and says with which they go
/// on.
using Exchange = std::function<void(std::int64_t step, std::vector<NamedTensors>& parameters)>;
void run_serials(Training training, int workers, Exchange const& exchange);

/// What local SGD is, from its definition: serial trainings whose parameters are replaced by their
/// mean every `inner_steps` steps. The mean of their parameters after the last step. With an outer
/// step, they go on from begin - lr (d + momentum m), which is computed in fp64: d is begin - mean,
/// m the sum of all d, each `momentum` times smaller with every later one.
struct Outer {
  double lr = 1, momentum = 0;
};
NamedTensors averaged_serials(Training const& training, int workers, int inner_steps,
                              std::optional<Outer> const& outer = {});

/// What streaming DiLoCo is, from its definition: serial trainings of which each fragment, the
/// tensors that `fragment_of` gives the same number, is averaged when its turn comes. `delay` steps
/// later each of them moves that part of its parameters to the mean, or to what the outer step
/// makes of it, but for the share `mixing_factor`.
struct Streaming {
  int inner_steps = 1, fragments = 1, delay = 0;
  double mixing_factor = 0;
  std::optional<Outer> outer;
  std::function<int(std::string const& name)> fragment_of = [](std::string const&) { return 0; };
};
NamedTensors streamed_serials(Training const& training, int workers, Streaming const& streaming);

}  // namespace stratagem::test
