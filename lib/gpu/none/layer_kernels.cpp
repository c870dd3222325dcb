#include "gpu/layers/batch_norm.hpp"
#include "gpu/layers/bias_relu.hpp"
#include "gpu/layers/cross_entropy.hpp"
#include "gpu/layers/layer_norm.hpp"

namespace stratagem::gpu {

void batch_norm(NormForward const& pass, Device const&) {
  batch_norm_on_host(pass);
}

void batch_norm(NormBackward const& pass, Device const&) {
  batch_norm_on_host(pass);
}

void bias_relu(BiasForward const& pass, Device const&) {
  bias_relu_on_host(pass);
}

void bias_relu(BiasBackward const& pass, Device const&) {
  bias_relu_on_host(pass);
}

void layer_norm(LayerNormForward const& pass, Device const&) {
  layer_norm_on_host(pass);
}

void layer_norm(LayerNormBackward const& pass, Device const&) {
  layer_norm_on_host(pass);
}

void cross_entropy(CrossEntropyPass const& pass, Device const&) {
  cross_entropy_on_host(pass);
}

}  // namespace stratagem::gpu
