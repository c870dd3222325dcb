#include "strategy/state/replicas.hpp"

#include <algorithm>
#include <map>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/arithmetic.hpp"
#include "base/contract.hpp"
#include "base/error.hpp"
#include "base/hash/bulk_hash.hpp"
#include "base/text.hpp"
#include "comm/agreement.hpp"
#include "comm/ranks_text.hpp"
#include "strategy/state/device_hash.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t piece = 1 << 20;  // [B], so that threads share a large tensor
constexpr std::size_t most_tensors = 3;  // that are named

std::uint64_t hash_of(at::Tensor const& tensor) {
  if (!tensor.is_cpu()) return device_hash(tensor);
  expects(tensor.is_non_overlapping_and_dense(), "a dense tensor");
  std::span const bytes(static_cast<std::byte const*>(tensor.data_ptr()),
                        static_cast<std::size_t>(bytes_of(tensor)));
  auto const pieces = ceil_div(bytes_of(tensor), piece);
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>(pieces));
  at::parallel_for(0, pieces, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i) {
      auto const from = static_cast<std::size_t>(i * piece);
      auto const size = std::min<std::size_t>(piece, bytes.size() - from);
      hashes[static_cast<std::size_t>(i)] = bulk_hash(bytes.subspan(from, size));
    }
  });
  Hash hash;
  for (auto const value : hashes) hash.add(value);
  return hash.value();
}

using Sides = std::map<std::string, std::vector<int>>;  // by hash, the ranks that have it

/// "on rank 2", or "between ranks 0, 1" where there is no majority.
std::string describe(Sides const& sides) {
  std::size_t ranks = 0;
  for (auto const& [_, side] : sides) ranks += side.size();
  std::vector<int> others;
  for (auto const& [_, side] : sides)
    if (2 * side.size() <= ranks) others.insert(others.end(), side.begin(), side.end());
  std::ranges::sort(others);
  return (others.size() == ranks ? "between " : "on ") + list_ranks(others);
}

}  // namespace

ReplicaHashes::ReplicaHashes(NamedTensors const& replicas) {
  for (auto const& [name, tensor] : replicas) tensors_.emplace_back(name, hash_of(tensor));
}

std::uint64_t ReplicaHashes::total() const {
  if (tensors_.empty()) return 0;
  Hash hash;
  for (auto const& [_, value] : tensors_) hash.add(value);
  return hash.value();
}

std::string ReplicaHashes::text() const {
  std::vector<std::string> lines;
  for (auto const& [name, value] : tensors_)
    lines.push_back(str(name, " ", Hash().add(value).hex()));
  return join(lines, "\n");
}

std::optional<std::string> divergence(std::span<std::string const> tables) {
  std::vector<std::string> order;      // of names
  std::map<std::string, Sides> found;  // by name
  for (std::size_t rank = 0; rank < tables.size(); ++rank) {
    if (tables[rank].empty()) continue;
    for (auto const& line : split(tables[rank], '\n')) {
      auto const space = line.rfind(' ');
      auto const name = line.substr(0, space);
      if (!found.contains(name)) order.push_back(name);
      found[name][line.substr(space + 1)].push_back(static_cast<int>(rank));
    }
  }
  std::vector<std::string> differences;
  for (auto const& name : order)
    if (auto const& sides = found[name]; sides.size() > 1)
      differences.push_back(str(name, " ", describe(sides)));
  if (differences.empty()) return std::nullopt;
  auto const more = differences.size() - std::min(differences.size(), most_tensors);
  differences.resize(differences.size() - more);
  return join(differences, ", ") + (more > 0 ? str(" and ", more, " more tensors") : "");
}

void require_equal_replicas(Communicator& communicator, ReplicaHashes const& own,
                            std::int64_t step) {
  auto totals = gather_texts(communicator, own.empty() ? "" : Hash().add(own.total()).hex());
  std::erase(totals, "");
  if (std::ranges::adjacent_find(totals, std::not_equal_to()) != totals.end())
    refuse_difference(communicator, own, step);
}

std::uint64_t fingerprint(CollectiveLog const& log, ReplicaHashes const& replicas) {
  return Hash().add(log.fingerprint()).add(replicas.total()).value();
}

void refuse_difference(Communicator& communicator, ReplicaHashes const& own, std::int64_t step) {
  auto const log = communicator.collectives().text();  // before it grows
  auto const logs = gather_texts(communicator, log);
  auto const tables = gather_texts(communicator, own.text());
  if (auto const different = first_difference(logs)) throw AgreedError(mismatch(*different));
  if (auto const different = divergence(tables))
    throw AgreedError(ExitCode::diverged, str("replicas differ at step ", step, ": ", *different),
                      "they have seen the same updates, so memory or a processor may be faulty",
                      "leave that host out");
  throw AgreedError(mismatch("their control records differ, longer ago than their logs reach"));
}

}  // namespace stratagem
