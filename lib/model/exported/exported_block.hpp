#pragma once

#include <memory>
#include <set>
#include <vector>

#include "model/block.hpp"
#include "model/exported/block_ranges.hpp"
#include "model/exported/flow.hpp"

namespace stratagem {

/// A program, its instructions, and the values of its constants; shared by the blocks.
struct ExportedGraph {
  explicit ExportedGraph(ExportedProgram read) : program(std::move(read)), flow(program) {}
  ExportedGraph(ExportedGraph const&) = delete;
  ExportedGraph& operator=(ExportedGraph const&) = delete;

  ExportedProgram program;
  Flow flow;
  struct Constant {
    ValueId value;
    at::Tensor tensor;  ///< on the CPU
    bool literal;       ///< stays fp32 in a pass of 16 bit
  };
  std::vector<Constant> constants;
};

/// Runs a range of a graph's instructions.
class ExportedBlock final : public Block {
 public:
  /// Declares the parameters and buffers that the range uses, and those in `unused` too.
  ExportedBlock(std::shared_ptr<ExportedGraph const> graph, BlockRange const& range,
                std::set<ValueId> const& unused);

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override;

  ExportedGraph const& graph() const { return *graph_; }

 private:
  struct Home {
    ValueId value;
    int index;      ///< among the frame's parameters or buffers
    bool as_given;  ///< not converted to the type of activations
  };

  void declare_state(std::set<ValueId> const& used, std::set<ValueId> const& unused);
  void find_releases();
  at::Tensor run(at::Tensor const& x, Frame const& frame) const;
  at::ScalarType type_of_pass(at::Tensor const& x, Frame const& frame) const;
  void load(Registers& registers, Frame const& frame, PassContext const& pass) const;

  std::shared_ptr<ExportedGraph const> graph_;
  BlockRange range_;
  std::vector<Home> parameters_, buffers_;
  std::vector<std::size_t> constants_;          ///< indices of the graph's that the range uses
  std::vector<std::vector<ValueId>> releases_;  ///< of each instruction: values needed no longer
};

}  // namespace stratagem
