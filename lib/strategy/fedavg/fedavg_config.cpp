#include "strategy/fedavg/fedavg_config.hpp"

#include "strategy/shared/shared_keys.hpp"

namespace stratagem {

Keys keys_of(FedAvgConfig& fedavg) {
  return {
      {"clients", integer(fedavg.clients, between(1, 1000000)),
       "that the training samples are dealt to", false, InFirstFile::yes},
      {"per_round", integer(fedavg.per_round, between(0, 100000)),
       "clients drawn for a round, equally many for each rank; 0: one for each", false,
       InFirstFile::as_comment},
      {"local_steps", integer(fedavg.local_steps, between(1, 1000000)),
       "of a client, of a global batch each, in a round: a step of the run", false,
       InFirstFile::yes},
      {"split", choice(fedavg.split, {split_names.begin(), split_names.end()}),
       "how samples are dealt: at random, or by their labels", false, InFirstFile::as_comment},
      {"split_alpha", number(fedavg.split_alpha, above(0)),
       "of split: dirichlet; the smaller, the less clients are alike", false,
       InFirstFile::as_comment},
      {"server_lr", number(fedavg.server_lr, above(0)),
       "of the step with the mean change; 1: goes to the mean", false, InFirstFile::as_comment},
      {"server_momentum", number(fedavg.server_momentum, {0, true, 1, false}),
       "of the same step (FedAvgM)", false, InFirstFile::as_comment},
      {"largest_change", number(fedavg.largest_change, {0, false, 1 << 20, true}),
       "of a parameter by a client in a round: what is beyond it is clipped"},
      {"secure", choice(fedavg.secure, {"none", "pairwise"}),
       "how changes are summed; pairwise: with masks that cancel in the sum", false,
       InFirstFile::as_comment},
      {"threshold", integer(fedavg.threshold, at_least(0)),
       "of secure: pairwise: of clients that share masks so many must answer; 0: two thirds"},
      {"neighbours", integer(fedavg.neighbours, at_least(0)),
       "of secure: pairwise: clients that each shares masks with; 0: all others"},
      micro_batches_key(fedavg.micro_batches),
      {"experiment.lost_clients", integer(fedavg.lost, at_least(0)),
       "clients of each round that train but do not answer"},
  };
}

std::vector<std::pair<std::string, FedAvgConfig>> alternatives(FedAvgConfig const& given) {
  return {{"fedavg", given}};
}

}  // namespace stratagem
