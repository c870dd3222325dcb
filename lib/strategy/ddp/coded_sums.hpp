#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "comm/work/work.hpp"
#include "compress/codec.hpp"
#include "strategy/ddp/coded_piece.hpp"
#include "strategy/ddp/gradient_sums.hpp"

namespace stratagem {

/// Of gradients that are written in blocks, piece by piece. Each rank codes its gradients and sends
/// every rank its slice; that rank adds up what it reads, in rank order, codes the sum and sends it
/// to all. What is lost is kept for the next step, if that is asked for.
class CodedSums final : public GradientSums {
 public:
  CodedSums(std::vector<CodedPiece> pieces, Compression const& compression,
            StrategyParts const& parts, ParameterLayout const& layout, Communicator& group);

  void begin(std::size_t bucket, at::Tensor const& gradients, std::int64_t step) override;
  void advance() override;
  void finish(std::size_t bucket) override;
  /// The residuals: each worker's own, and this rank's slices of those of the sum.
  std::vector<ParameterState> state() const override;

 private:
  enum class Stage { idle, exchanging, returning };
  struct Exchange {
    Stage stage = Stage::idle;
    std::vector<Work> arriving, returning, sent;
  };

  void begin_piece(std::size_t piece);
  void finish_piece(std::size_t piece);
  int rank() const { return group_.rank(); }
  int ranks() const { return group_.size(); }
  /// Room for a code to or from rank `peer`.
  at::Tensor room(at::Tensor const& of, std::size_t piece, int peer) const;
  /// The part of it that the code of the slice of rank `owner` fills.
  std::span<std::byte> code(at::Tensor const& of, std::size_t piece, int peer, int owner) const;
  std::span<float> values(std::size_t piece, int rank) const;
  /// Codes the slice of rank `owner` with a residual, which may be undefined.
  void encode(std::size_t piece, int owner, at::Tensor const& residual, int stage,
              std::span<std::byte> code);
  void clear_padding(std::size_t piece, int owner, std::span<float> values) const;
  /// Of the sum of this rank's slice; undefined without feedback.
  at::Tensor own_residual(std::size_t piece) const;
  /// Adds up this rank's slice, and begins to send the sum.
  void add_up(std::size_t piece);
  bool arrived(Exchange const& exchange) const;

  std::vector<CodedPiece> pieces_;
  Communicator& group_;
  ParameterLayout layout_;
  Codec codec_;
  std::vector<std::int64_t> first_byte_, first_of_sums_;  ///< by piece, in what is below
  /// Codes of slices for each rank, of this rank's slice by each rank, and of all sums.
  at::Tensor sending_, receiving_, summed_;
  at::Tensor residual_;         ///< [parameters], undefined without feedback
  at::Tensor residual_of_sum_;  ///< of this rank's slices, piece by piece; the same
  at::Tensor gradients_;        ///< of the present step
  std::int64_t step_ = 0;
  std::vector<Exchange> exchanges_;  ///< by piece
};

}  // namespace stratagem
