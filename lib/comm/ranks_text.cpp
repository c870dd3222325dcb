#include "comm/ranks_text.hpp"

#include <vector>

#include "base/text.hpp"

namespace stratagem {

std::string list_ranks(std::span<int const> ranks) {
  std::vector<std::string> texts;
  for (int const rank : ranks) texts.push_back(str(rank));
  return str(ranks.size() == 1 ? "rank " : "ranks ", join(texts, ", "));
}

}  // namespace stratagem
