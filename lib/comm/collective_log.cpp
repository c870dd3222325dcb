#include "comm/collective_log.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "comm/ranks_text.hpp"

namespace stratagem {
namespace {

using Kind = CollectiveCall::Kind;

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::all_reduce:
      return "all_reduce";
    case Kind::reduce_scatter:
      return "reduce_scatter";
    case Kind::all_gather:
      return "all_gather";
    case Kind::broadcast:
      return "broadcast";
    case Kind::barrier:
      return "barrier";
  }
  return "";
}

}  // namespace

std::string CollectiveCall::text() const {
  if (kind == Kind::barrier) return "barrier";
  auto text = str(to_string(kind), " of ", numel, " ", c10::toString(type));
  if (offset != 0) text += str(" at ", offset);
  return kind == Kind::broadcast ? str(text, " from rank ", root) : text;
}

void CollectiveLog::add(CollectiveCall const& call) {
  std::lock_guard const lock(mutex_);
  auto const word = [](auto value) { return static_cast<std::uint64_t>(value); };
  hash_.add(word(call.kind) << 32 | word(call.type) << 16 | word(call.root))
      .add(word(call.numel))
      .add(word(call.offset));
  last_[static_cast<std::size_t>(count_++) % kept] = call;
}

std::uint64_t CollectiveLog::fingerprint() const {
  std::lock_guard const lock(mutex_);
  return hash_.value();
}

std::string CollectiveLog::text(std::string_view group) const {
  std::lock_guard const lock(mutex_);
  auto const at = group.empty() ? std::string() : str('@', group);
  std::vector<std::string> lines;
  auto const first = std::max<std::int64_t>(0, count_ - static_cast<std::int64_t>(kept));
  for (auto n = first; n < count_; ++n)
    lines.push_back(str(n, at, " ", last_[static_cast<std::size_t>(n) % kept].text()));
  return join(lines, "\n");
}

std::optional<std::string> first_difference(std::span<std::string const> logs) {
  using Number = std::pair<std::string, std::int64_t>;              // in a group
  std::map<Number, std::map<std::string, std::vector<int>>> calls;  // call, ranks
  for (std::size_t rank = 0; rank < logs.size(); ++rank) {
    if (logs[rank].empty()) continue;
    for (auto const& line : split(logs[rank], '\n')) {
      auto const space = line.find(' '), at = std::min(line.find('@'), space);
      auto const group = line.substr(at, space - at);
      if (auto const number = parse_integer(line.substr(0, at)))
        calls[{group, *number}][line.substr(space + 1)].push_back(static_cast<int>(rank));
    }
  }
  for (auto const& [number, ranks_of] : calls) {
    if (ranks_of.size() < 2) continue;
    std::vector<std::string> sides;
    for (auto const& [call, ranks] : ranks_of)
      sides.push_back(str(call, " on ", list_ranks(ranks)));
    auto const& [group, place] = number;
    auto const of_group = group.empty() ? std::string() : " of " + group.substr(1);
    return str("collective ", place, of_group, " is ", join(sides, " and "));
  }
  return std::nullopt;
}

Error mismatch(std::string const& difference) {
  return {ExitCode::mismatch, "ranks called different collectives", difference,
          "start the same program with the same configuration everywhere; else it is a bug"};
}

}  // namespace stratagem
