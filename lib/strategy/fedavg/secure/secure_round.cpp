#include "strategy/fedavg/secure/secure_round.hpp"

#include <utility>

#include <ATen/ATen.h>

#include "strategy/fedavg/secure/server.hpp"

namespace stratagem {

using trace::Phase;

namespace {

/// Of this machine's memory.
std::span<std::uint32_t> words_of(at::Tensor const& host) {
  return {reinterpret_cast<std::uint32_t*>(host.data_ptr<int>()),
          static_cast<std::size_t>(host.numel())};
}

/// Calls `act` with the words of an int32 tensor, which it changes; on a GPU with a copy of them.
template <class Act>
void change_words(at::Tensor const& tensor, Act act) {
  auto const host = tensor.to(at::kCPU);  // itself there
  act(words_of(host));
  if (!tensor.is_cpu()) tensor.copy_(host);
}

at::Tensor bytes_tensor(std::vector<std::uint8_t>& bytes) {
  return at::from_blob(bytes.data(), {static_cast<std::int64_t>(bytes.size())}, at::kByte);
}

/// The i-th of messages of one kind.
template <class Message>
std::span<std::uint8_t, Message::bytes> piece(std::span<std::uint8_t> of, std::size_t i) {
  return of.subspan(i * Message::bytes).template first<Message::bytes>();
}

template <class Message>
void write_all(std::span<Message const> messages, std::span<std::uint8_t> to) {
  for (std::size_t i = 0; i < messages.size(); ++i) messages[i].write(piece<Message>(to, i));
}

template <class Message>
std::vector<Message> read_all(std::span<std::uint8_t> from) {
  std::vector<Message> messages;
  for (std::size_t i = 0; i < from.size() / Message::bytes; ++i)
    messages.push_back(Message::read(piece<Message>(from, i)));
  return messages;
}

}  // namespace

SecureRound::SecureRound(Neighbourhood const& neighbourhood, StrategyParts const& parts,
                         at::Tensor messages, std::int64_t round)
    : neighbourhood_(neighbourhood),
      bytes_(neighbourhood),
      parts_(parts),
      messages_(std::move(messages)),
      round_(round) {
  count_ = neighbourhood.parties() / parts.world.all().size();
  first_ = parts.world.all().rank() * count_;
  parts_.recorder.enter(Phase::optimizer);
  attempt([&] {
    for (int place = first_; place < first_ + count_; ++place)
      clients_.emplace_back(neighbourhood, round, place);
  });
  exchange_keys();
  exchange_shares();
}

void SecureRound::attempt(std::function<void()> const& act) {
  if (failure_) return;
  try {
    act();
  } catch (Error const& error) {
    failure_ = error;
  }
}

std::vector<std::uint8_t> SecureRound::spread(std::int64_t bytes, Write const& write) {
  auto const size = static_cast<std::size_t>(bytes);
  std::vector<std::uint8_t> own(static_cast<std::size_t>(count_) * size);
  std::vector<std::uint8_t> all(own.size() * static_cast<std::size_t>(parts_.world.all().size()));
  attempt([&] {
    for (std::size_t client = 0; client < clients_.size(); ++client)
      write(client, std::span(own).subspan(client * size, size));
  });
  parts_.recorder.enter(Phase::comm_exposed);
  auto const of_all = messages_.narrow(0, 0, static_cast<std::int64_t>(all.size()));
  auto const of_rank = of_all.narrow(0, first_ * bytes, static_cast<std::int64_t>(own.size()));
  of_rank.copy_(bytes_tensor(own));
  parts_.world.all().all_gather(of_all, of_rank).wait_on_stream();
  bytes_tensor(all).copy_(of_all);
  parts_.recorder.enter(Phase::optimizer);
  return all;
}

void SecureRound::exchange_keys() {
  auto all = spread(bytes_.keys, [&](std::size_t client, std::span<std::uint8_t> message) {
    clients_[client].advertise().write(piece<PublicKeys>(message, 0));
  });
  attempt([&] { keys_ = read_all<PublicKeys>(all); });
}

void SecureRound::exchange_shares() {
  auto all = spread(bytes_.shares, [&](std::size_t client, std::span<std::uint8_t> message) {
    auto const shares = clients_[client].share(keys_);
    write_all<SealedShares>(shares, message);
  });
  attempt([&] {
    auto const shares = read_all<SealedShares>(all);
    for (auto& client : clients_) client.receive(shares);
  });
}

void SecureRound::mask(std::size_t client, at::Tensor const& codes) {
  attempt([&] { change_words(codes, [&](auto words) { clients_[client].mask(words); }); });
}

/// Nothing of those who are lost.
std::vector<std::uint8_t> SecureRound::exchange_revealed(Answers const& answers) {
  return spread(bytes_.revealed, [&](std::size_t client, std::span<std::uint8_t> message) {
    if (!answers.lives(place_of(client))) return;
    auto const shares = clients_[client].reveal(answers);
    write_all<RevealedShare>(shares, message);
  });
}

void SecureRound::unmask(Answers const& answers, at::Tensor const& sum) {
  std::optional<Unmasking> server;
  attempt([&] { server.emplace(neighbourhood_, round_, keys_, answers); });
  auto revealed = exchange_revealed(answers);
  attempt([&] {
    auto const size = static_cast<std::size_t>(bytes_.revealed);
    for (int const holder : answers.living) {
      auto const message =
          std::span(revealed).subspan(static_cast<std::size_t>(holder) * size, size);
      for (auto& share : read_all<RevealedShare>(message))
        if (is_own(share.owner)) server->take(std::move(share));
    }
    change_words(sum, [&](auto words) {
      for (int place = first_; place < first_ + count_; ++place) server->remove_masks(place, words);
    });
  });
}

}  // namespace stratagem
