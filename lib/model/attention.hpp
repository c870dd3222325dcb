#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace stratagem {

/// Which positions of its sequence a position sees.
enum class Attends { to_all, to_earlier };

/// Multi-head self-attention (Vaswani et al., "Attention is all you need", 2017) without its
/// projections: softmax(q k^T / sqrt(width / heads)) v. `joined` [n, T, 3 width]: queries, keys and
/// values, each of all heads one after the other. [n, T, width]. A position sees itself, too. The
/// scores are not kept where LibTorch has a kernel that does without (flash attention, Dao et al.,
/// 2022): on CPUs always.
at::Tensor self_attention(at::Tensor const& joined, std::int64_t heads, Attends attends);

}  // namespace stratagem
