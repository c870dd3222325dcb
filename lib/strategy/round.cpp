#include "strategy/round.hpp"

namespace stratagem {

void run_round(Member const& member, Round const& round, RoundHooks const& hooks) {
  if (member.server) return member.server->serve(round);
  auto& strategy = *member.strategy;
  strategy.begin_round(round);
  for (bool goes_on = true; goes_on;) {
    hooks.before();
    auto const batch = round.batches->next(round.end_step);
    if (!batch) break;
    goes_on = hooks.after(*batch, strategy.step(*batch, hooks.options(*batch)));
  }
  strategy.drain();
}

}  // namespace stratagem
