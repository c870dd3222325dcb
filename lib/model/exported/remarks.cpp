#include "model/exported/remarks.hpp"

#include "base/text.hpp"
#include "model/exported/exported_block.hpp"

namespace stratagem {
namespace {

/// Of one kind of layer: how many there are, and how many of them are in evaluation mode.
struct Count {
  std::string_view name;
  int all = 0, evaluating = 0;

  void add(bool evaluates) {
    ++all;
    evaluating += evaluates;
  }
  /// "all 3 dropouts", "2 of 3 dropouts"; empty for none.
  std::string text() const {
    if (evaluating == 0) return "";
    if (all == 1) return str("the only ", name);
    return evaluating == all ? str("all ", all, " ", name, "s")
                             : str(evaluating, " of ", all, " ", name, "s");
  }
};

std::string evaluation_text(Flow const& flow) {
  using Kind = Instruction::Kind;
  Count norms{"batch norm"}, dropouts{"dropout"};
  ExportedNode const* first = nullptr;
  for (auto const& instruction : flow.instructions()) {
    bool const norm = instruction.kind() == Kind::batch_norm,
               dropout = instruction.kind() == Kind::dropout && instruction.number("p") > 0;
    if (!norm && !dropout) continue;
    bool const evaluates = instruction.flag(norm ? "training" : "train") == false;
    (norm ? norms : dropouts).add(evaluates);
    if (evaluates && first == nullptr) first = &instruction.node();
  }
  if (first == nullptr) return "";
  auto const of_norms = norms.text(), of_dropouts = dropouts.text();
  bool const several = norms.evaluating + dropouts.evaluating > 1;
  return str(of_norms, of_norms.empty() || of_dropouts.empty() ? "" : " and ", of_dropouts, " of ",
             flow.program().path, several ? " are" : " is", " in evaluation mode, first ",
             describe(*first),
             ": statistics stay as they are and nothing is dropped, in training too; call "
             "model.train() before torch.export, or set model.frozen: true if that is meant");
}

std::string by_batch_text(Flow const& flow) {
  for (auto const& instruction : flow.instructions())
    if (instruction.kind() == Instruction::Kind::batch_norm && !instruction.tensor("running_mean"))
      return str(describe(instruction.node()), " of ", flow.program().path,
                 " keeps no running statistics: it takes those of its batch in evaluation, too, so "
                 "test results depend on the batches, which other strategies and numbers of ranks "
                 "cut otherwise");
  return "";
}

}  // namespace

ExportedRemarks exported_remarks(Model const& model) {
  ExportedRemarks remarks;
  auto const* block = dynamic_cast<ExportedBlock const*>(model.blocks.front().get());
  if (block == nullptr) return remarks;
  auto const& graph = block->graph();
  for (auto const& state : graph.program.state) {
    bool const trained = graph.flow.gradients().trained().contains(state.value);
    if (state.kind != ExportedState::Kind::parameter || trained) continue;
    auto& untrained = state.frozen ? remarks.frozen : remarks.unreached;
    untrained.names.push_back(state.name);
    untrained.elements += c10::multiply_integers(graph.program.value(state.value).fixed_shape());
  }
  remarks.evaluation = evaluation_text(graph.flow);
  remarks.by_batch = by_batch_text(graph.flow);
  return remarks;
}

std::string parameters_text(Model const& model) {
  auto text = str(format_count(model.parameter_count()), " parameters");
  auto const add = [&](Untrained const& untrained, char const* why) {
    if (!untrained.names.empty()) text += str(", ", format_count(untrained.elements), " ", why);
  };
  auto const remarks = exported_remarks(model);
  add(remarks.frozen, "frozen");
  add(remarks.unreached, "without a gradient");
  return text;
}

}  // namespace stratagem
