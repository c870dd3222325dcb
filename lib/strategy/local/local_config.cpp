#include "strategy/local/local_config.hpp"

#include "strategy/shared/shared_keys.hpp"

namespace stratagem {

Keys keys_of(LocalConfig& local) {
  return {
      {"workers", integer(local.workers, between(0, 1024)),
       "of which each rank plays equally many, in turn; 0: one on each rank", false,
       InFirstFile::as_comment},
      {"inner_steps", integer(local.inner_steps, between(1, 1000000)),
       "of each worker from one averaging of parameters to the next; 1: gradients, every step",
       false, InFirstFile::yes},
      {"begin_step", integer(local.begin_step, at_least(0)),
       "before it gradients are averaged in every step (post-local SGD)", false,
       InFirstFile::as_comment},
      {"outer_lr", number(local.outer_lr, above(0)),
       "of the step from the last averaging that the mean is taken for; 1: goes to the mean", false,
       InFirstFile::as_comment},
      {"outer_momentum", number(local.outer_momentum, {0, true, 1, false}),
       "of the same step, Nesterov's (DiLoCo: outer_lr 0.7, outer_momentum 0.9)", false,
       InFirstFile::as_comment},
      {"fragments", integer(local.fragments, between(1, 1024)),
       "of the model, averaged in turn, each every inner_steps steps (streaming DiLoCo)", false,
       InFirstFile::as_comment},
      {"delay", integer(local.delay, between(0, 1000000)),
       "steps made while a fragment is under way; less than inner_steps / fragments", false,
       InFirstFile::as_comment},
      {"mixing_factor", number(local.mixing_factor, {0, true, 1, false}),
       "share that a worker keeps of its own parameters when a fragment arrives", false,
       InFirstFile::as_comment},
      micro_batches_key(local.micro_batches),
  };
}

std::vector<std::pair<std::string, LocalConfig>> alternatives(LocalConfig const& given) {
  return {{"local", given}};
}

}  // namespace stratagem
