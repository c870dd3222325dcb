#include "train/instruction_set.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

#include <ATen/Version.h>

#include "base/text.hpp"
#include "comm/ranks_text.hpp"

namespace stratagem {
namespace {

using Words = std::vector<std::string>;

// LibTorch's own, ATEN_CPU_CAPABILITY, shows in its capability.
constexpr std::array<char const*, 7> variables{"MKL_CBWR",
                                               "MKL_ENABLE_INSTRUCTIONS",
                                               "MKL_DEBUG_CPU_TYPE",
                                               "DNNL_MAX_CPU_ISA",
                                               "ONEDNN_MAX_CPU_ISA",
                                               "ONEDNN_DEFAULT_FPMATH_MODE",
                                               "DNNL_DEFAULT_FPMATH_MODE"};

/// Wider or fused arithmetic, for which kernels exist.
constexpr std::array<std::string_view, 14> instructions{
    "avx",         "avx2",        "fma",      "avx512f",  "avx512dq", "avx512bw", "avx512vl",
    "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16", "asimd",    "sve",      "sve2"};

Words words_of(std::string const& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// Of the first processor that Linux tells of.
std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  Words found;
  while (std::getline(file, line) && !line.empty()) {
    auto const colon = line.find(':');
    if (colon == line.npos) continue;
    auto const values = words_of(line.substr(colon + 1));
    if (line.starts_with("vendor_id") || line.starts_with("CPU implementer"))
      found.insert(found.begin(), values.begin(), values.end());
    if (line.starts_with("flags") || line.starts_with("Features"))
      std::ranges::copy_if(values, std::back_inserter(found), [](std::string const& value) {
        return std::ranges::find(instructions, value) != instructions.end();
      });
  }
  return join(found, " ");
}

/// Words of `some` that are not among `others`.
std::string only_in(Words const& some, Words const& others) {
  Words left;
  for (auto const& word : some)
    if (std::ranges::find(others, word) == others.end()) left.push_back(word);
  return left.empty() ? "nothing more" : join(left, " ");
}

}  // namespace

std::string kernel_settings() {
  Words settings;
  for (auto const* name : variables)
    if (auto const* value = std::getenv(name)) settings.push_back(str(name, "=", value));
  return join(settings, " ");
}

std::string instruction_set() {
  return str(at::get_cpu_capability(), " ", kernel_settings(), " ", processor());
}

std::optional<std::string> mixed_instructions(mpi::Comm const& world, bool computes) {
  return mixed_instructions(world.all_gather(computes ? instruction_set() : ""));
}

std::optional<std::string> mixed_instructions(std::vector<std::string> const& by_rank) {
  auto const first = std::ranges::find_if_not(by_rank, &std::string::empty);
  if (first == by_rank.end()) return std::nullopt;
  std::vector<int> different;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank)
    if (!by_rank[rank].empty() && by_rank[rank] != *first)
      different.push_back(static_cast<int>(rank));
  if (different.empty()) return std::nullopt;
  auto const theirs = words_of(by_rank[static_cast<std::size_t>(different.front())]);
  auto const own = words_of(*first);
  return str(list_ranks(different), different.size() == 1 ? " has " : " have ",
             only_in(theirs, own), ", rank ", first - by_rank.begin(), " has ",
             only_in(own, theirs));
}

}  // namespace stratagem
