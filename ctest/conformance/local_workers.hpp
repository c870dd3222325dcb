#pragma once

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
/// The mean of their parameters after the last step.
NamedTensors averaged_serials(Training training, int workers, int inner_steps);

}  // namespace stratagem::test
