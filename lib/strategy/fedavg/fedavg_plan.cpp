#include "strategy/fedavg/fedavg_plan.hpp"

#include <nlohmann/json.hpp>

#include "base/console/table.hpp"
#include "base/error.hpp"
#include "base/hash/hash.hpp"
#include "base/text.hpp"
#include "crypto/primitives.hpp"
#include "crypto/shamir.hpp"
#include "strategy/fedavg/fedavg.hpp"
#include "strategy/fedavg/fixed_point.hpp"
#include "strategy/planned_clients.hpp"
#include "strategy/planned_strategy.hpp"
#include "strategy/shared/gradient_scale.hpp"
#include "strategy/shared/step_status.hpp"
#include "strategy/shared/worker_plan.hpp"
#include "strategy/timing/lanes.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t code_bytes = 4;  // of a parameter's change

std::string spread_text(ClientSplit::Spread const& spread) {
  return str(format_count(spread.least), " least, ", format_count(spread.median), " median, ",
             format_count(spread.most), " most");
}

nlohmann::json spread_json(ClientSplit::Spread const& spread) {
  return {{"least", spread.least}, {"median", spread.median}, {"most", spread.most}};
}

/// Of a rank, in a round, to mask its clients' changes and to take masks out of the sum. Measured
/// on a core of an AMD EPYC with OpenSSL 3.0: a key stream and its sum, and an agreement of keys.
double seconds_of_masks(FedAvgPlan const& plan, double bytes) {
  constexpr double stream_s_per_byte = 0.25e-9, agreement_s = 130e-6;
  double const neighbours = plan.neighbourhood().neighbours();
  double const lost = double(plan.config.lost) / plan.drawn, living = 1 - lost;
  // Both sides of a pair have a mask; those who live take out their own, and those that they have
  // with the lost, whose keys are agreed on again.
  double const again = lost * neighbours * (plan.drawn - plan.config.lost) / (plan.drawn - 1);
  double const streams = living * (1 + neighbours) + living + again;
  double const agreements = 2 * neighbours + again;
  return plan.clients_of_rank() * (streams * bytes * stream_s_per_byte + agreements * agreement_s);
}

class PlannedFedAvg final : public PlannedAs<FedAvgPlan> {
 public:
  using PlannedAs::PlannedAs;

  Member make(StrategyParts const& parts) const override {
    return {.strategy = std::make_unique<FedAvg>(plan_, parts)};
  }

  /// As FedAvg::step() makes it. A client's change is coded in about the time of an update.
  StepTime time(StepParts const& parts) const override {
    auto const& config = plan_.config;
    auto const bytes = static_cast<double>(parts.layout.size() * code_bytes);
    auto const& costs = parts.costs;
    auto const gather = [&](Lanes& lanes, std::int64_t bytes_of_client) {
      auto const of_all = static_cast<double>(plan_.drawn * bytes_of_client);
      lanes.await(lanes.communicate(costs.all_gather.at(of_all)));
    };
    auto const mean = steady(parts, [&](Lanes& lanes) {
      for (int step = 0; step < plan_.clients_of_rank() * config.local_steps; ++step) {
        for (int pass = 0; pass < config.micro_batches; ++pass)
          lanes.compute(costs.forward_s + costs.backward_s);
        lanes.compute(costs.optimizer_s);
      }
      lanes.compute(plan_.clients_of_rank() * costs.optimizer_s);
      if (plan_.is_secure()) {
        SecureBytes const sent(plan_.neighbourhood());
        for (auto const of_client : {sent.keys, sent.shares, sent.revealed})
          gather(lanes, of_client);
        lanes.compute(seconds_of_masks(plan_, bytes));
      }
      lanes.await(lanes.communicate(costs.all_reduce.at(bytes)));
      lanes.compute(costs.optimizer_s);
    });
    return time_of_collectives(mean, parts);
  }

  std::string tables(Model const& /*model*/) const override {
    auto const& config = plan_.config;
    Table table({{"fedavg", Align::left}, {"", Align::left}});
    table.add_row({"a round, a step of the run",
                   str(plan_.drawn, " of ", config.clients, " clients, ", plan_.clients_of_rank(),
                       " on each rank; ", config.local_steps, " steps of each")});
    table.add_row({"server", str("lr ", shortest(config.server_lr), ", momentum ",
                                 shortest(config.server_momentum))});
    if (config.lost > 0)
      table.add_row(
          {"lost in a round", str(config.lost, " clients: they train, but do not answer")});
    if (plan_.is_secure()) {
      auto const hood = plan_.neighbourhood();
      SecureBytes const sent(hood);
      table.add_row(
          {"secure sum", str("masks of pairs, each client with ", hood.neighbours(), " others; ",
                             hood.threshold(), " of ", hood.members(), " must answer")});
      table.add_row({"keys and shares",
                     str(bytes_text(sent.keys), ", and ", bytes_text(sent.shares + sent.revealed),
                         ", by each client in a round")});
    }
    table.add_row({"sent for a round", bytes_text(plan_.exchange_bytes) + " by each rank"});
    return table.render();
  }

  void add_to(nlohmann::json& document) const override {
    auto const& config = plan_.config;
    document["fedavg"] = {{"clients", config.clients},
                          {"per_round", plan_.drawn},
                          {"clients_of_rank", plan_.clients_of_rank()},
                          {"local_steps", config.local_steps},
                          {"server_lr", config.server_lr},
                          {"server_momentum", config.server_momentum},
                          {"lost_clients", config.lost},
                          {"exchange_B", plan_.exchange_bytes}};
    if (!plan_.is_secure()) return;
    auto const hood = plan_.neighbourhood();
    SecureBytes const sent(hood);
    document["fedavg"]["secure"] = {{"threshold", hood.threshold()},
                                    {"neighbours", hood.neighbours()},
                                    {"keys_B", sent.keys},
                                    {"shares_B", sent.shares + sent.revealed}};
  }
};

/// Of those whose samples a round trains on.
class FedAvgClients final : public PlannedClients {
 public:
  explicit FedAvgClients(FedAvgPlan const& plan) : plan_(plan) {}

  ClientConfig config() const override {
    return {.clients = plan_.config.clients,
            .per_round = plan_.drawn,
            .split = plan_.config.split,
            .alpha = plan_.config.split_alpha};
  }

  void check(ClientSplit const& split) const override {
    check_weights(plan_, split.most_samples(plan_.drawn));
  }

  std::string tables(ClientSplit const& split) const override {
    auto const codes = codes_of(split);
    Table table({{"clients", Align::left}, {format_count(split.clients()), Align::left}});
    table.add_row({"samples of a client", spread_text(split.samples())});
    if (split.labels().most > 0) table.add_row({"labels of a client", spread_text(split.labels())});
    table.add_row(
        {"a change in a sum", str(codes.bits(), " bits or more: multiples of 2^", -codes.exponent(),
                                  ", less than ", shortest(codes.range() + codes.unit()))});
    return table.render();
  }

  void add_to(nlohmann::json& document, ClientSplit const& split) const override {
    auto& fedavg = document["fedavg"];
    fedavg["samples_of_client"] = spread_json(split.samples());
    if (split.labels().most > 0) fedavg["labels_of_client"] = spread_json(split.labels());
    fedavg["value_bits"] = codes_of(split).bits();
    fedavg["unit"] = codes_of(split).unit();
  }

 private:
  /// Those of the round whose clients have most samples.
  FixedPoint codes_of(ClientSplit const& split) const {
    return {split.most_samples(plan_.drawn), plan_.config.largest_change};
  }

  FedAvgPlan plan_;
};

void check_clients(FedAvgPlan const& plan) {
  auto const& config = plan.config;
  if (plan.drawn > config.clients)
    refuse_with(FedAvgConfig::name,
                str("strategy.per_round: ", plan.drawn, " of ", config.clients, " clients"),
                "a round draws different ones", str("take at most ", config.clients));
  if (plan.drawn % plan.ranks != 0)
    refuse_with(FedAvgConfig::name,
                str("strategy.per_round: ", plan.drawn, " clients on ", plan.ranks, " ranks"),
                "each rank plays equally many",
                str("take a multiple of ", plan.ranks, ", or 0 for one on each rank"));
  if (config.split != Split::dirichlet && config.split_alpha != FedAvgConfig().split_alpha)
    refuse_with(FedAvgConfig::name, "strategy.split_alpha", "only split: dirichlet has it",
                "leave it out");
}

void refuse(std::string const& what, std::string const& why, std::string const& cure) {
  refuse_with(FedAvgConfig::name, what, why, cure);
}

void check_lost(FedAvgPlan const& plan) {
  if (plan.config.lost >= plan.drawn)
    refuse(str("experiment.lost_clients: ", plan.config.lost, " of ", plan.drawn, " in a round"),
           "nobody would answer", str("take at most ", plan.drawn - 1));
}

/// Whom clients share masks with.
void check_neighbours(FedAvgPlan const& plan) {
  int const neighbours = plan.config.neighbours;
  if (plan.drawn < 2)
    refuse("strategy.secure: pairwise with 1 client in a round", "the sum would be its change",
           "draw more clients: strategy.per_round");
  if (neighbours >= plan.drawn || neighbours % 2 != 0)
    refuse(str("strategy.neighbours: ", neighbours, " of ", plan.drawn, " clients in a round"),
           "they are others, as many on one side of a ring as on the other",
           "take an even number below that of the clients, or 0 for all others");
  if (plan.neighbourhood().members() > crypto::most_shares)
    refuse(str("strategy.neighbours: ", neighbours, ", which is ",
               plan.neighbourhood().neighbours(), " others"),
           str("a secret has at most ", crypto::most_shares, " shares"),
           str("take at most ", crypto::most_shares - 1));
}

void check_threshold(FedAvgPlan const& plan) {
  auto const hood = plan.neighbourhood();
  auto const what = str("strategy.threshold: ", hood.threshold(), " of ", hood.members(),
                        " clients that share masks");
  if (hood.threshold() > hood.members())
    refuse(what, "so many cannot answer", str("take at most ", hood.members()));
  if (2 * hood.threshold() <= hood.members())
    refuse(what, "two halves could be told different things, and reveal both secrets of a client",
           str("take at least ", hood.members() / 2 + 1));
  if (plan.drawn - plan.config.lost < hood.threshold())
    refuse(str("experiment.lost_clients: ", plan.config.lost, " of ", plan.drawn, " in a round"),
           str("strategy.threshold: ", hood.threshold(), " must answer"), "lower one of the two");
}

void check_secure(FedAvgPlan const& plan) {
  auto const& config = plan.config;
  for (auto const& [key, value] : {std::pair{"strategy.threshold", config.threshold},
                                   {"strategy.neighbours", config.neighbours}})
    if (!plan.is_secure() && value != 0)
      refuse(key, "only secure: pairwise has it", "leave it out");
  if (!plan.is_secure()) return;
  crypto::require_available("strategy.secure: pairwise");
  check_neighbours(plan);
  check_threshold(plan);
}

void check(FedAvgPlan const& plan, PlanInput const& input) {
  check_clients(plan);
  check_lost(plan);
  check_secure(plan);
  std::string const why = "a client does not know the others' gradients";
  if (input.optimizer.clip_norm > 0)
    refuse_with(FedAvgConfig::name, "optimizer.clip_norm", why,
                "set it to 0, or take strategy ddp");
  if (input.optimizer.reduction == Reduction::sum)
    refuse_with(FedAvgConfig::name, "optimizer.reduction: sum", why, "take mean");
  if (scales_loss(input.precision))
    refuse_with(FedAvgConfig::name, "precision.loss_scale: dynamic", why,
                "set it to none, or take strategy ddp");
}

/// The replica, where a round began, a gradient, codes, their sum and messages; one optimizer for
/// all clients of a rank, which train in turn, but running statistics for each.
gpu::MemoryUse memory_of(FedAvgPlan const& plan, StrategyPlan const& of_replica,
                         std::int64_t elements) {
  auto memory = of_replica.memory;
  auto const copy = elements * of_replica.element_size;
  memory[gpu::MemoryCategory::optimizer] += plan.has_momentum() ? 2 * copy : copy;
  memory[gpu::MemoryCategory::gradients] +=
      status_room * of_replica.element_size + 2 * elements * code_bytes;
  if (plan.is_secure()) memory[gpu::MemoryCategory::gradients] += plan.message_room();
  memory[gpu::MemoryCategory::buffers] *= plan.clients_of_rank();
  return memory;
}

/// What decides the numbers of a training, by its key.
std::map<std::string, std::string> choices_of(FedAvgPlan const& plan) {
  auto const& config = plan.config;
  std::map<std::string, std::string> choices{
      {"strategy.clients", std::to_string(config.clients)},
      {"strategy.local_steps", std::to_string(config.local_steps)},
      {"strategy.split", name_of(config.split)},
      {"strategy.server_lr", shortest(config.server_lr)},
      {"strategy.server_momentum", shortest(config.server_momentum)},
      {"strategy.largest_change", shortest(config.largest_change)}};
  if (config.split == Split::dirichlet)
    choices["strategy.split_alpha"] = shortest(config.split_alpha);
  if (config.lost > 0) choices["experiment.lost_clients"] = std::to_string(config.lost);
  return choices;
}

}  // namespace

StrategyPlan plan_of(FedAvgConfig const& config, PlanInput const& input) {
  auto plan = plan_of_replicas(input);
  FedAvgPlan fedavg{.config = config,
                    .drawn = config.per_round > 0 ? config.per_round : input.ranks,
                    .ranks = input.ranks};
  check(fedavg, input);
  auto const elements = input.layout.size();
  fedavg.exchange_bytes = all_reduce_bytes(elements * code_bytes, input.ranks) +
                          all_reduce_bytes(status_room * plan.element_size, input.ranks);
  if (fedavg.is_secure())
    fedavg.exchange_bytes +=
        (input.ranks - 1) * fedavg.clients_of_rank() * SecureBytes(fedavg.neighbourhood()).all();
  plan.shares.workers = fedavg.drawn;
  plan.shares.micro_batches = config.local_steps * config.micro_batches;
  plan.shares.batches_per_step = config.local_steps;
  plan.shares.clients = std::make_shared<FedAvgClients const>(fedavg);
  plan.memory = memory_of(fedavg, plan, elements);
  plan.saved.copies = 0;  // no optimizer's state is: only these
  plan.saved.states = fedavg.has_momentum() ? 2 : 1;
  plan.traffic.bytes_sent = plan.traffic.most_bytes_sent = fedavg.exchange_bytes;
  plan.numbers.order_of_sums = order_of_sums(config.micro_batches);
  plan.numbers.of_serial = false;
  plan.numbers.choices = choices_of(fedavg);
  plan.traffic.operations = {BenchOperation::all_reduce};
  if (fedavg.is_secure()) plan.traffic.operations.push_back(BenchOperation::all_gather);
  Hash hash;
  hash.add(std::uint64_t(fedavg.drawn));
  hash.add(std::uint64_t(fedavg.is_secure() ? fedavg.neighbourhood().neighbours() : 0))
      .add(std::uint64_t(fedavg.is_secure() ? fedavg.neighbourhood().threshold() : 0));
  for (auto const& [key, value] : plan.numbers.choices) hash.add(key).add(value);
  plan.hashes.emplace_back("clients and rounds", hash.value());
  plan.strategy = std::make_shared<PlannedFedAvg>(fedavg);
  return plan;
}

void check_weights(FedAvgPlan const& plan, std::int64_t samples) {
  auto const bits = FixedPoint(samples, plan.config.largest_change).bits();
  if (bits < FixedPoint::least_bits)
    refuse_with(FedAvgConfig::name,
                str("strategy.per_round: ", plan.drawn, " clients with up to ",
                    format_count(samples), " samples"),
                str("sums are weighted by these in 32 bits, which leaves ", bits, " for a change"),
                str("draw fewer clients: ", FixedPoint::least_bits, " bits are the least"));
}

}  // namespace stratagem
