#pragma once

#include <optional>
#include <string>

#include "conformance/training.hpp"

namespace stratagem::test {

/// Of what a training of strategy local ends with, on every rank: the mean parameters, what each
/// worker has of its own, and the mean of their running statistics.
std::string digest_on(Training const& training, Communicator& communicator);
/// The same on one rank, which plays all workers.
std::string digest_alone(Training const& training);

/// What local SGD is, from its definition: so many trainings of strategy serial, each on its part
/// of the global batches, whose parameters are replaced by their mean every `inner_steps` steps.
/// The mean of their parameters after the last step. With an outer step, they go on from
/// begin - lr (d + momentum m), which is computed in fp64: d is begin - mean, m the sum of all d,
/// each `momentum` times smaller with every later one.
struct Outer {
  double lr = 1, momentum = 0;
};
NamedTensors averaged_serials(Training training, int workers, int inner_steps,
                              std::optional<Outer> const& outer = {});

}  // namespace stratagem::test
