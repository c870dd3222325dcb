#pragma once

#include <string>

#include "model/block.hpp"
#include "model/fused/batch_norm.hpp"

namespace stratagem {

// Layers are values: they declare their tensors on construction, and compute with the tensors of
// the frame.

struct Conv2d {
  struct Shape {
    std::int64_t in, out, kernel;
    std::int64_t stride = 1, padding = 0, groups = 1;
    bool bias = false;

    /// Counted as by PyTorch's initialisers, which ignore groups in fan_out.
    std::int64_t fan_in() const { return in / groups * kernel * kernel; }
    std::int64_t fan_out() const { return out * kernel * kernel; }
  };
  /// Declares `<prefix>.weight`, and `<prefix>.bias` if the shape has one.
  Conv2d(Declaration& declare, std::string const& prefix, Shape const& shape,
         Initialiser weight_init, Initialiser bias_init = Initialiser::constant(0));
  at::Tensor operator()(at::Tensor const& x, Frame const& frame) const;
  /// With the ReLU that follows.
  at::Tensor with_relu(at::Tensor const& x, Frame const& frame) const;

  Shape shape;
  int weight;
  int bias = -1;
};

struct Linear {
  struct Shape {
    std::int64_t in, out;
    /// The first of the `out` rows in a layer that is divided into parts; a total of 0 means not
    /// divided.
    std::int64_t row_begin = 0, total_rows = 0;
  };
  Linear(Declaration& declare, std::string const& prefix, Shape const& shape,
         Initialiser weight_init, Initialiser bias_init);
  at::Tensor operator()(at::Tensor const& x, Frame const& frame) const;

  int weight, bias;
};

/// With what is added to its result, if defined, and the activation that follows. Its parameters
/// and statistics stay fp32. Error(usage) when training with one value per channel.
struct BatchNorm2d {
  BatchNorm2d(Declaration& declare, std::string const& prefix, std::int64_t channels,
              double eps = 1e-5, double momentum = 0.1);
  at::Tensor operator()(at::Tensor const& x, Frame const& frame,
                        Activation activation = Activation::none,
                        at::Tensor const& added = {}) const;
  /// In training, of maps that can grow.
  NormedAndInput with_input(at::Tensor const& x, Frame const& frame, Activation activation) const;

  double eps, momentum;
  int weight, bias, running_mean, running_var;
  int num_batches_tracked;  ///< counts passes, see BufferSpec

 private:
  BatchNormOf of(at::Tensor const& x, Frame const& frame, Activation activation) const;
};

/// Normalises the last dimension; computed in fp32 if x is a 16-bit float.
struct LayerNorm {
  LayerNorm(Declaration& declare, std::string const& prefix, std::int64_t channels,
            double eps = 1e-5);
  at::Tensor operator()(at::Tensor const& x, Frame const& frame) const;

  double eps;
  int weight, bias;
};

/// Zeroes elements with probability p and scales the rest by 1 / (1 - p). The mask depends on
/// `name`.
struct Dropout {
  std::string name;
  double p;
  at::Tensor operator()(at::Tensor const& x, Frame const& frame) const;
};

/// Zeroes whole samples of a residual branch with probability p and scales the rest by 1 / (1 - p)
/// (Huang et al., "Deep networks with stochastic depth", 2016).
struct StochasticDepth {
  std::string name;
  double p;
  at::Tensor operator()(at::Tensor const& x, Frame const& frame) const;
};

/// Keep (1) or drop (0), fp32 [samples, count]; each element is dropped with probability p. Dropout
/// and StochasticDepth (count 1) multiply by this mask, before scaling. An element is a pure
/// function of the seed, the step, the sample's slot, the layer's name and its own index in the
/// sample, on any device.
at::Tensor keep_mask(Context const& context, std::string const& name, std::int64_t samples,
                     std::int64_t count, double p, at::Device device = at::kCPU);

/// PyTorch's default for Conv2d and Linear: uniform within 1 / sqrt(fan_in), for weights and
/// biases.
Initialiser default_uniform(std::int64_t fan_in);
/// He et al. 2015 for ReLU: normal with variance 2 / fan.
Initialiser kaiming_normal(std::int64_t fan);

}  // namespace stratagem
