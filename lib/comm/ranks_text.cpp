#include "comm/ranks_text.hpp"

#include <vector>

#include "base/text.hpp"

namespace stratagem {

std::string join_ranks(std::span<int const> ranks, std::string_view separator) {
  std::vector<std::string> texts;
  for (int const rank : ranks) texts.push_back(str(rank));
  return join(texts, separator);
}

std::string list_ranks(std::span<int const> ranks) {
  return str(ranks.size() == 1 ? "rank " : "ranks ", join_ranks(ranks, ", "));
}

}  // namespace stratagem
