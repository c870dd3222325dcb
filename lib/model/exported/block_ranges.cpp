#include "model/exported/block_ranges.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "base/text.hpp"

namespace stratagem {
namespace {

constexpr int most_blocks = 64;

/// Operators that follow a layer and belong to it. An in-place one ends with `_`.
constexpr std::array<std::string_view, 24> followers{"batch_norm",
                                                     "relu",
                                                     "relu6",
                                                     "hardtanh",
                                                     "gelu",
                                                     "silu",
                                                     "hardswish",
                                                     "hardsigmoid",
                                                     "sigmoid",
                                                     "tanh",
                                                     "elu",
                                                     "leaky_relu",
                                                     "mish",
                                                     "dropout",
                                                     "feature_dropout",
                                                     "max_pool2d",
                                                     "avg_pool2d",
                                                     "adaptive_avg_pool2d",
                                                     "adaptive_max_pool2d",
                                                     "flatten",
                                                     "add",
                                                     "mul",
                                                     "softmax",
                                                     "mean"};

bool follows(Instruction const& instruction) {
  return std::ranges::find(followers, instruction.node().base_name()) != followers.end();
}

/// `layer1.0.conv1` -> `layer1`, `layer1.0`, `layer1.0.conv1`.
std::vector<std::string> prefixes(std::string const& module) {
  std::vector<std::string> found;
  for (auto point = module.find('.'); point != std::string::npos;
       point = module.find('.', point + 1))
    found.push_back(module.substr(0, point));
  if (!module.empty()) found.push_back(module);
  return found;
}

void name_blocks(Flow const& flow, std::vector<BlockRange>& blocks) {
  std::map<std::string, std::set<std::size_t>> blocks_of;  // of each module: which have a part
  auto const& instructions = flow.instructions();
  auto const module = [&](int i) {
    return instructions[static_cast<std::size_t>(i)].node().module;
  };
  for (std::size_t b = 0; b < blocks.size(); ++b)
    for (int i = blocks[b].begin; i < blocks[b].end; ++i)
      for (auto const& prefix : prefixes(module(i))) blocks_of[prefix].insert(b);
  std::map<std::string, int> taken;
  for (auto& block : blocks) {
    std::string longest = "model";
    for (int i = block.begin; i < block.end && block.name.empty(); ++i)
      for (auto const& prefix : prefixes(module(i))) {
        longest = prefix;
        if (blocks_of.at(prefix).size() == 1 && block.name.empty()) block.name = prefix;
      }
    if (block.name.empty()) block.name = longest;
    if (auto const before = taken[block.name]++; before > 0) block.name += str('#', before + 1);
  }
}

}  // namespace

std::vector<BlockRange> block_ranges(Flow const& flow) {
  auto const& program = flow.program();
  auto const& instructions = flow.instructions();
  auto const& parameters = flow.gradients().trained();
  auto const uses_parameters = [&](Instruction const& instruction) {
    return std::ranges::any_of(instruction.inputs(),
                               [&](ValueId v) { return parameters.contains(v); });
  };
  auto const count = static_cast<int>(instructions.size());
  auto const least = std::max(1, count / most_blocks);
  auto const counts = [](Instruction const& i) {
    return i.kind() != Instruction::Kind::count_batches;
  };

  std::vector<BlockRange> blocks;
  int begin = 0, size = 0, next = 0;
  bool has_parameters = false;
  ValueId input = program.input;
  for (auto const& [after, value] : flow.cuts()) {
    for (; next <= after; ++next) {
      auto const& instruction = instructions[static_cast<std::size_t>(next)];
      size += counts(instruction);
      has_parameters = has_parameters || uses_parameters(instruction);
    }
    auto following = static_cast<std::size_t>(next);
    while (!counts(instructions[following])) ++following;
    if (size < least || !has_parameters || follows(instructions[following])) continue;
    bool const more =
        std::ranges::any_of(instructions.begin() + next, instructions.end(), uses_parameters);
    if (!more) break;
    blocks.push_back({begin, next, input, value, ""});
    begin = next;
    size = 0;
    has_parameters = false;
    input = value;
  }
  blocks.push_back({begin, count, input, program.output, ""});
  name_blocks(flow, blocks);
  return blocks;
}

}  // namespace stratagem
