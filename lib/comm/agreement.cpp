#include "comm/agreement.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/text.hpp"
#include "comm/ranks_text.hpp"

namespace stratagem {
namespace {

/// "82 text"; empty without an error.
std::string encode(std::optional<Error> const& error) {
  return error ? str(to_int(error->code()), " ", error->what()) : std::string();
}

std::optional<Error> decode(std::string const& text) {
  if (text.empty()) return std::nullopt;
  auto const space = text.find(' ');
  auto const code = static_cast<ExitCode>(*parse_integer(text.substr(0, space)));
  return Error(code, text.substr(space + 1));
}

void throw_joint(std::vector<std::string> const& encoded) {
  std::vector<std::optional<Error>> by_rank;
  std::transform(encoded.begin(), encoded.end(), std::back_inserter(by_rank), decode);
  if (auto const error = joint_error(by_rank)) throw AgreedError(*error);
}

void throw_unless_equal(std::vector<std::string> const& values, std::string_view what,
                        ExitCode code, std::string const& cure) {
  std::vector<int> different;
  for (std::size_t rank = 1; rank < values.size(); ++rank)
    if (values[rank] != values[0]) different.push_back(static_cast<int>(rank));
  if (different.empty()) return;
  auto const first = static_cast<std::size_t>(different.front());
  throw AgreedError(code, str(what, " of ", list_ranks(different), " is not that of rank 0"),
                    str(values[first], " instead of ", values[0]), cure);
}

}  // namespace

std::vector<std::string> gather_texts(Communicator& comm, std::string const& text) {
  auto const size = static_cast<std::int64_t>(comm.size());
  auto length = comm.allocate(1, at::kLong), gathered_lengths = comm.allocate(size, at::kLong);
  length.fill_(static_cast<std::int64_t>(text.size()));
  comm.all_gather(gathered_lengths, length).wait_on_host();
  auto const lengths = gathered_lengths.cpu();
  auto const longest = lengths.max().item<std::int64_t>();

  auto padded = text;
  padded.resize(static_cast<std::size_t>(longest));
  auto bytes = comm.allocate(longest, at::kByte), all = comm.allocate(size * longest, at::kByte);
  bytes.copy_(at::from_blob(padded.data(), {longest}, at::kByte));
  comm.all_gather(all, bytes).wait_on_host();
  auto const joined = all.cpu();

  std::vector<std::string> texts;
  for (std::int64_t rank = 0; rank < size; ++rank) {
    auto const* begin = static_cast<char const*>(joined.data_ptr()) + rank * longest;
    texts.emplace_back(begin, static_cast<std::size_t>(lengths[rank].item<std::int64_t>()));
  }
  return texts;
}

std::optional<Error> joint_error(std::span<std::optional<Error> const> by_rank) {
  std::vector<int> failed;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank)
    if (by_rank[rank]) failed.push_back(static_cast<int>(rank));
  if (failed.empty()) return std::nullopt;
  auto const& first = *by_rank[static_cast<std::size_t>(failed.front())];
  if (failed.size() == by_rank.size()) return first;
  return Error(first.code(), str(list_ranks(failed), ": ", first.what()));
}

void agree(Communicator& comm, std::optional<Error> const& own) {
  throw_joint(gather_texts(comm, encode(own)));
}

void agree(mpi::Comm const& comm, std::optional<Error> const& own) {
  throw_joint(comm.all_gather(encode(own)));
}

void require_equal(Communicator& comm, std::string_view what, std::string const& value,
                   ExitCode code, std::string const& cure) {
  throw_unless_equal(gather_texts(comm, value), what, code, cure);
}

void require_equal(mpi::Comm const& comm, std::string_view what, std::string const& value,
                   ExitCode code, std::string const& cure) {
  throw_unless_equal(comm.all_gather(value), what, code, cure);
}

}  // namespace stratagem
