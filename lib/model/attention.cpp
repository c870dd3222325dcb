#include "model/attention.hpp"

#include <ATen/ATen.h>

#include "base/contract.hpp"

namespace stratagem {

at::Tensor self_attention(at::Tensor const& joined, std::int64_t heads, Attends attends) {
  auto const samples = joined.size(0), length = joined.size(1), width = joined.size(2) / 3;
  expects(joined.size(2) == 3 * width && width % heads == 0, "heads divide the width");
  auto const of_heads = [&](at::Tensor const& part) {
    return part.view({samples, length, heads, width / heads}).transpose(1, 2);
  };
  auto const parts = joined.split(width, 2);
  auto const seen =
      at::scaled_dot_product_attention(of_heads(parts[0]), of_heads(parts[1]), of_heads(parts[2]),
                                       {}, /*dropout_p=*/0, attends == Attends::to_earlier);
  return seen.transpose(1, 2).reshape({samples, length, width});
}

}  // namespace stratagem
