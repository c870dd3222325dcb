#include "strategy/fedavg/secure/client.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "crypto/shamir.hpp"
#include "strategy/fedavg/secure/pair_key.hpp"

namespace stratagem {
namespace {

[[noreturn]] void refuse(std::string const& what, std::string const& why) {
  throw Error(ExitCode::bad_data, what, why);
}

/// Round, sender, receiver: a message of another round or pair does not open.
std::array<std::uint8_t, 16> associated(std::int64_t round, int from, int to) {
  std::array<std::uint8_t, 16> bytes{};
  auto const put = [&](std::size_t at, std::uint64_t number, int count) {
    for (int i = 0; i < count; ++i)
      bytes[at + static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(number >> 8 * i);
  };
  put(0, static_cast<std::uint64_t>(round), 8);
  put(8, static_cast<std::uint64_t>(from), 4);
  put(12, static_cast<std::uint64_t>(to), 4);
  return bytes;
}

/// A pair has one key in a round, and one message in each direction: the nonce is the direction.
crypto::Nonce nonce_of(int from, int to) {
  return {static_cast<std::uint8_t>(from < to ? 1 : 2)};
}

}  // namespace

SecureClient::SecureClient(Neighbourhood const& neighbourhood, std::int64_t round, int place)
    : neighbourhood_(neighbourhood),
      round_(round),
      sealing_(crypto::random_secret()),
      masking_(crypto::random_secret()),
      own_mask_(crypto::random_secret()) {
  own_ = {.client = place,
          .sealing = crypto::public_key(sealing_),
          .masking = crypto::public_key(masking_)};
}

std::vector<SealedShares> SecureClient::share(std::span<PublicKeys const> keys) {
  if (!keys_.empty())
    refuse(str("client ", own_.client, " shares nothing"),
           "it has done so in this round: a pair's key seals one message in each direction");
  keys_ = table_of(keys, neighbourhood_.parties());
  int const members = neighbourhood_.members(), threshold = neighbourhood_.threshold();
  auto of_mask = crypto::split(own_mask_, threshold, members);
  auto of_key = crypto::split(masking_, threshold, members);
  seals_.resize(of_mask.size());
  held_.resize(of_mask.size());
  std::vector<SealedShares> messages;
  for (std::size_t i = 0; i < of_mask.size(); ++i) {
    int const to = neighbourhood_.member(own_.client, static_cast<int>(i) + 1);
    HeldShares held{.point = of_mask[i].point,
                    .own_mask = std::move(of_mask[i].value),
                    .mask_key = std::move(of_key[i].value)};
    if (to == own_.client) {
      held_[i] = std::move(held);
      continue;
    }
    seals_[i] =
        pair_key(KeyUse::sealing, round_, sealing_, own_, keys_[static_cast<std::size_t>(to)]);
    std::array<std::uint8_t, HeldShares::bytes> open{};
    held.write(open);
    auto& message = messages.emplace_back(SealedShares{.from = own_.client, .to = to});
    crypto::seal(seals_[i], nonce_of(own_.client, to), associated(round_, own_.client, to), open,
                 message.sealed);
    crypto::wipe(open);
  }
  return messages;
}

void SecureClient::receive(std::span<SealedShares const> shares) {
  for (auto const& message : shares) {
    if (message.to != own_.client) continue;
    auto const who = str("shares of client ", message.from, " for client ", message.to);
    int const point = neighbourhood_.is_place(message.from)
                          ? neighbourhood_.point_of(own_.client, message.from)
                          : 0;
    if (point == 0 || message.from == own_.client) refuse(who, "these two share nothing");
    auto const index = static_cast<std::size_t>(point - 1);
    if (held_.at(index)) refuse(who, "there are some already");
    std::array<std::uint8_t, HeldShares::bytes> open{};
    if (!crypto::unseal(seals_[index], nonce_of(message.from, message.to),
                        associated(round_, message.from, message.to), message.sealed, open))
      refuse(who, "they are forged or damaged: their tag is wrong");
    auto held = HeldShares::read(open);
    crypto::wipe(open);
    if (held.point != neighbourhood_.point_of(message.from, own_.client))
      refuse(who, str("they are shares at point ", int{held.point}, ", which is another's"));
    held_[index] = std::move(held);
  }
  for (std::size_t i = 0; i < held_.size(); ++i)
    if (!held_[i])
      refuse(str("client ", neighbourhood_.member(own_.client, static_cast<int>(i) + 1),
                 " has sent no shares to client ", own_.client),
             "without them its masks may stay in the sum");
}

void SecureClient::mask(std::span<std::uint32_t> input) const {
  crypto::add_key_stream(own_mask_, crypto::Sign::plus, input);
  for (int point = 1; point <= neighbourhood_.members(); ++point) {
    auto const& other = keys_[static_cast<std::size_t>(neighbourhood_.member(own_.client, point))];
    if (other.client != own_.client) add_pair_mask(round_, masking_, own_, other, input);
  }
}

std::vector<RevealedShare> SecureClient::reveal(Answers const& answers) {
  auto const who = str("client ", own_.client, " reveals no shares");
  if (std::exchange(revealed_, true))
    refuse(who, "it has done so in this round: shares of both secrets would uncover its input");
  std::vector<RevealedShare> shares;
  int living = 0;
  for (std::size_t i = 0; i < held_.size(); ++i) {
    int const owner = neighbourhood_.member(own_.client, static_cast<int>(i) + 1);
    bool const lives = std::ranges::count(answers.living, owner) > 0;
    if (lives == (std::ranges::count(answers.lost, owner) > 0))
      refuse(who,
             str("client ", owner,
                 lives ? " is asked for as living and as lost" : " is neither living nor lost"));
    living += lives ? 1 : 0;
    auto const& held = held_[i].value();
    auto const& value = lives ? held.own_mask : held.mask_key;
    shares.push_back({.holder = own_.client,
                      .owner = owner,
                      .kind = lives ? SecretKind::own_mask : SecretKind::mask_key,
                      .share = {held.point, value.copy()}});
  }
  if (living < neighbourhood_.threshold())
    refuse(who, str("of the members of its neighbourhood ", living,
                    " are said to live; the threshold is ", neighbourhood_.threshold()));
  return shares;
}

}  // namespace stratagem
