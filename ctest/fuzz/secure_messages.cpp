#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fuzz/input_file.hpp"
#include "strategy/fedavg/secure/client.hpp"
#include "strategy/fedavg/secure/server.hpp"

using namespace stratagem;

namespace {

constexpr int parties = 6, place = 2;
constexpr std::int64_t round_number = 3;
Neighbourhood const ring(parties, 4, 3);

/// Whole messages, as they arrive; what is left over is not looked at.
template <class Message>
std::vector<Message> read(std::span<std::uint8_t const> bytes) {
  std::vector<Message> messages;
  for (; bytes.size() >= Message::bytes; bytes = bytes.subspan(Message::bytes))
    messages.push_back(Message::read(bytes.template first<Message::bytes>()));
  return messages;
}

std::vector<PublicKeys> const& known_keys() {
  static std::vector<PublicKeys> const keys = [] {
    std::vector<PublicKeys> made;
    for (int other = 0; other < parties; ++other)
      made.push_back(SecureClient(ring, round_number, other).advertise());
    return made;
  }();
  return keys;
}

void hear_keys(std::span<std::uint8_t const> bytes) {
  SecureClient client(ring, round_number, place);
  auto const sealed = client.share(read<PublicKeys>(bytes));
  test::require(sealed.size() == 4);
  std::vector<std::uint32_t> words(3);
  client.mask(words);
}

/// Nobody who does not know a key of a pair can have sealed for it.
void hear_shares(std::span<std::uint8_t const> bytes) {
  SecureClient client(ring, round_number, place);
  static_cast<void>(client.share(known_keys()));
  client.receive(read<SealedShares>(bytes));
  test::require(false);
}

/// Whatever was revealed, the key of a lost client is not rebuilt from it.
void hear_revealed(std::span<std::uint8_t const> bytes) {
  Unmasking server(ring, round_number, known_keys(), {{0, 1, 2, 3, 5}, {4}});
  for (auto& share : read<RevealedShare>(bytes)) server.take(std::move(share));
  std::vector<std::uint32_t> sum(3);
  for (int other = 0; other < parties; ++other) {
    server.remove_masks(other, sum);
    test::require(other != 4);
  }
}

}  // namespace

/// The first byte chooses who hears the rest: messages of a secure sum.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  if (size < 1) return 0;
  std::span const bytes(data + 1, size - 1);
  test::reads_or_refuses(ExitCode::bad_data, [&] {
    if (data[0] % 3 == 0) hear_keys(bytes);
    if (data[0] % 3 == 1) hear_shares(bytes);
    if (data[0] % 3 == 2) hear_revealed(bytes);
  });
  return 0;
}
