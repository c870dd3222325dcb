#include "strategy/fedavg/secure/messages.hpp"

#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

/// Puts values one after the other, of as many bytes as there is room for.
class Writer {
 public:
  explicit Writer(std::span<std::uint8_t> to) : rest_(to) {}

  void number(int value) {
    for (int byte = 0; byte < 4; ++byte)
      this->byte(static_cast<std::uint8_t>(static_cast<std::uint32_t>(value) >> 8 * byte));
  }
  void byte(std::uint8_t value) { bytes({&value, 1}); }
  void bytes(std::span<std::uint8_t const> values) {
    std::ranges::copy(values, rest_.first(values.size()).begin());
    rest_ = rest_.subspan(values.size());
  }

 private:
  std::span<std::uint8_t> rest_;
};

/// Takes them in the same order.
class Reader {
 public:
  explicit Reader(std::span<std::uint8_t const> from) : rest_(from) {}

  int number() {
    std::uint32_t value = 0;
    for (int place = 0; place < 4; ++place) value |= std::uint32_t{byte()} << 8 * place;
    return static_cast<int>(value);
  }
  std::uint8_t byte() {
    std::uint8_t value = 0;
    bytes({&value, 1});
    return value;
  }
  void bytes(std::span<std::uint8_t> values) {
    std::ranges::copy(rest_.first(values.size()), values.begin());
    rest_ = rest_.subspan(values.size());
  }

 private:
  std::span<std::uint8_t const> rest_;
};

SecretKind kind_of(std::uint8_t byte) {
  if (byte > static_cast<std::uint8_t>(SecretKind::mask_key))
    throw Error(ExitCode::bad_data, "a share of no known secret");
  return static_cast<SecretKind>(byte);
}

}  // namespace

void PublicKeys::write(std::span<std::uint8_t, bytes> to) const {
  Writer writer(to);
  writer.number(client);
  writer.bytes(sealing);
  writer.bytes(masking);
}

PublicKeys PublicKeys::read(std::span<std::uint8_t const, bytes> from) {
  Reader reader(from);
  PublicKeys keys{.client = reader.number()};
  reader.bytes(keys.sealing);
  reader.bytes(keys.masking);
  return keys;
}

std::vector<PublicKeys> table_of(std::span<PublicKeys const> keys, int parties) {
  std::vector<std::optional<PublicKeys>> found(static_cast<std::size_t>(parties));
  for (auto const& of_client : keys) {
    if (of_client.client < 0 || of_client.client >= parties)
      throw Error(ExitCode::bad_data,
                  str("keys of client ", of_client.client, " in a round of ", parties, " clients"));
    auto& place = found[static_cast<std::size_t>(of_client.client)];
    if (place) throw Error(ExitCode::bad_data, str("client ", of_client.client, " has keys twice"));
    place = of_client;
  }
  std::vector<PublicKeys> table;
  for (auto const& of_client : found) {
    if (!of_client) throw Error(ExitCode::bad_data, str("client ", table.size(), " has no keys"));
    table.push_back(*of_client);
  }
  return table;
}

void HeldShares::write(std::span<std::uint8_t, bytes> to) const {
  Writer writer(to);
  writer.byte(point);
  writer.bytes(own_mask.bytes());
  writer.bytes(mask_key.bytes());
}

HeldShares HeldShares::read(std::span<std::uint8_t const, bytes> from) {
  Reader reader(from);
  HeldShares held;
  held.point = reader.byte();
  reader.bytes(held.own_mask.bytes());
  reader.bytes(held.mask_key.bytes());
  return held;
}

void SealedShares::write(std::span<std::uint8_t, bytes> place) const {
  Writer writer(place);
  writer.number(from);
  writer.number(to);
  writer.bytes(sealed);
}

SealedShares SealedShares::read(std::span<std::uint8_t const, bytes> place) {
  Reader reader(place);
  SealedShares shares;
  shares.from = reader.number();
  shares.to = reader.number();
  reader.bytes(shares.sealed);
  return shares;
}

void RevealedShare::write(std::span<std::uint8_t, bytes> to) const {
  Writer writer(to);
  writer.number(holder);
  writer.number(owner);
  writer.byte(static_cast<std::uint8_t>(kind));
  writer.byte(share.point);
  writer.bytes(share.value.bytes());
}

RevealedShare RevealedShare::read(std::span<std::uint8_t const, bytes> from) {
  Reader reader(from);
  RevealedShare revealed;
  revealed.holder = reader.number();
  revealed.owner = reader.number();
  revealed.kind = kind_of(reader.byte());
  revealed.share.point = reader.byte();
  reader.bytes(revealed.share.value.bytes());
  return revealed;
}

}  // namespace stratagem
