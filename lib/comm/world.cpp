#include "comm/world.hpp"

#include <algorithm>

#include "base/contract.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/failure.hpp"
#include "comm/ranks_text.hpp"

namespace stratagem {
namespace {

/// The ranks in "0,2".
std::vector<int> ranks_in(std::string const& text) {
  std::vector<int> ranks;
  for (auto const& word : split(text, ',')) ranks.push_back(std::stoi(word));
  return ranks;
}

/// Given by each rank: the name of its group, and the group's ranks. Throws on all ranks alike.
void check_groups(std::vector<std::string> const& given) {
  for (std::size_t rank = 0; rank < given.size(); ++rank)
    for (int const other : ranks_in(split(given[rank], ' ')[1]))
      if (auto const& theirs = given[static_cast<std::size_t>(other)]; theirs != given[rank])
        throw AgreedError(ExitCode::mismatch, "ranks form different groups",
                          str(given[rank], " on rank ", rank, ", ", theirs, " on rank ", other),
                          "it is a bug");
}

}  // namespace

Communicator& World::group(std::string const& name, std::vector<int> const& ranks) {
  expects(std::ranges::is_sorted(ranks) && std::ranges::count(ranks, all().rank()) == 1 &&
              ranks.front() >= 0 && ranks.back() < all().size(),
          "ranks in ascending order, this one among them");
  all().barrier().wait_on_host();  // which notices if a rank does not come
  auto const given = gather(str(name, ' ', join_ranks(ranks, ",")));
  check_groups(given);
  auto& found = found_[join(given, "\n")];
  if (found == nullptr) {
    auto const whole = static_cast<int>(ranks.size()) == all().size();
    if (!whole) groups_.push_back(open(name, ranks));
    found = whole ? &all() : groups_.back().get();
  }
  return *found;
}

std::vector<Communicator*> World::communicators() {
  std::vector<Communicator*> found{&all()};
  for (auto const& group : groups_) found.push_back(group.get());
  return found;
}

std::int64_t World::bytes_sent() {
  std::int64_t sent = 0;
  for (auto const* communicator : communicators()) sent += communicator->bytes_sent();
  return sent;
}

World::Kept World::keep(std::function<void()> const& body) {
  auto const groups = communicators();
  Kept kept(groups.size());
  auto whole = body;
  for (std::size_t i = 0; i < groups.size(); ++i)
    whole = [&kept, &groups, i, inner = std::move(whole)] { kept[i] = groups[i]->keep(inner); };
  whole();
  return kept;
}

void World::repeat(Kept const& kept) {
  auto const groups = communicators();
  for (std::size_t i = 0; i < kept.size(); ++i) groups[i]->repeat(kept[i]);
}

}  // namespace stratagem
