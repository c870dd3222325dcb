#pragma once

#include "model/model.hpp"

namespace stratagem {

/// A vision transformer (Dosovitskiy et al., "An image is worth 16x16 words", ICLR 2021), with the
/// tensors of torchvision's VisionTransformer.
struct VitShape {
  std::int64_t layers = 12, heads = 12, width = 768;
  std::int64_t patch = 16;  ///< edge [pixels]; divides the image
  double dropout = 0;       ///< of the embedding and of what each half of a layer adds
};

/// Blocks: patches, then the attention and the MLP half of every layer, then the head.
Model make_vit(std::string const& name, VitShape const& shape, InputShape const& input,
               std::int64_t classes);

}  // namespace stratagem
