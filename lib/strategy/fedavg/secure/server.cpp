#include "strategy/fedavg/secure/server.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "strategy/fedavg/secure/pair_key.hpp"

namespace stratagem {

Unmasking::Unmasking(Neighbourhood const& neighbourhood, std::int64_t round,
                     std::span<PublicKeys const> keys, Answers const& answers)
    : neighbourhood_(neighbourhood),
      round_(round),
      keys_(table_of(keys, neighbourhood.parties())),
      lives_(keys_.size(), false),
      shares_(keys_.size()) {
  for (int const client : answers.living) lives_.at(static_cast<std::size_t>(client)) = true;
  check_living();
}

void Unmasking::check_living() const {
  for (int client = 0; client < neighbourhood_.parties(); ++client) {
    int living = 0;
    for (int point = 1; point <= neighbourhood_.members(); ++point)
      living += lives_[static_cast<std::size_t>(neighbourhood_.member(client, point))] ? 1 : 0;
    if (living < neighbourhood_.threshold())
      throw Error(ExitCode::usage,
                  str("the sum of round ", round_, " stays masked: of the ",
                      neighbourhood_.members(), " clients that share masks around place ", client,
                      " only ", living, " have answered"),
                  str("strategy.threshold is ", neighbourhood_.threshold()),
                  "lower experiment.lost_clients or strategy.threshold, or raise "
                  "strategy.neighbours");
  }
}

void Unmasking::take(RevealedShare share) {
  auto const refuse = [&](std::string const& why) {
    throw Error(ExitCode::bad_data,
                str("a share of client ", share.owner, " from client ", share.holder), why);
  };
  if (!neighbourhood_.is_place(share.holder) || !neighbourhood_.is_place(share.owner))
    refuse("there is no such client in the round");
  if (!lives_[static_cast<std::size_t>(share.holder)]) refuse("who holds it is lost");
  if (share.share.point != neighbourhood_.point_of(share.owner, share.holder) ||
      share.share.point == 0)
    refuse(str("at point ", int{share.share.point}, ", which is not its own"));
  auto const owner = static_cast<std::size_t>(share.owner);
  if (share.kind != (lives_[owner] ? SecretKind::own_mask : SecretKind::mask_key))
    refuse("of another secret than the one that is asked for");
  if (std::ranges::count(shares_[owner], share.share.point, &crypto::Share::point) > 0)
    refuse("there is one already");
  shares_[owner].push_back(std::move(share.share));
}

crypto::Secret Unmasking::rebuilt(int client) const {
  auto const& shares = shares_.at(static_cast<std::size_t>(client));
  auto const threshold = static_cast<std::size_t>(neighbourhood_.threshold());
  if (shares.size() < threshold)
    throw Error(
        ExitCode::bad_data,
        str("of the secret of client ", client, " only ", shares.size(), " shares are there"),
        str("strategy.threshold is ", threshold));
  return crypto::combine(std::span(shares).first(threshold));
}

void Unmasking::remove_masks(int client, std::span<std::uint32_t> sum) const {
  auto const place = static_cast<std::size_t>(client);
  auto const secret = rebuilt(client);
  if (lives_[place]) {
    crypto::add_key_stream(secret, crypto::Sign::minus, sum);
    return;
  }
  if (crypto::public_key(secret) != keys_[place].masking)
    throw Error(ExitCode::bad_data, str("the shares of client ", client, " are not of its key"),
                "one of them is forged or damaged");
  // What it would have added itself, which cancels what they have.
  for (int point = 1; point <= neighbourhood_.members(); ++point) {
    auto const& other = keys_[static_cast<std::size_t>(neighbourhood_.member(client, point))];
    if (other.client != client && lives_[static_cast<std::size_t>(other.client)])
      add_pair_mask(round_, secret, keys_[place], other, sum);
  }
}

}  // namespace stratagem
