#pragma once

#include <memory>
#include <string>

#include "model/block.hpp"

namespace stratagem {

struct ExpertsShape {
  std::int64_t width = 768;
  std::int64_t experts = 8;
  double norm_eps = 1e-5;
  double weight_stddev = 0.02;
  double projection_stddev = 0.02;  ///< of what is added to the residual stream
  double dropout = 0;
};

/// x + mixture(norm(x)): every token is computed by the two of several MLPs that a router gives the
/// highest scores, weighted by the softmax of these two (Shazeer et al., "Outrageously large neural
/// networks", ICLR 2017; Jiang et al., "Mixtral of experts", 2024). No token is dropped. Experts
/// compute one after the other, each its tokens in ascending order, so that sums have an order.
///
/// In training, 0.01 E sum_e f_e P_e is added to the loss of a pass, where f_e is the share of
/// choices that fell on expert e and P_e its mean probability over the tokens: it is least where
/// all experts are used alike (Fedus et al., "Switch transformers", JMLR 2022). It is no part of
/// the loss that is told. Buffer `tokens_per_expert` counts choices in training.
std::unique_ptr<Block> make_experts_half(std::string const& layer, ExpertsShape const& shape);

}  // namespace stratagem
