#include "model/block_tape.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "gpu/memory.hpp"
#include "model/layers.hpp"
#include "model/support.hpp"

namespace stratagem {
namespace {

/// Convolution, BatchNorm, and a shortcut around them; in its first form without a shortcut.
class Residual final : public Block {
 public:
  Residual(std::string const& name, std::int64_t in, std::int64_t out)
      : Block(name),
        shortcut_(in == out),
        conv_(declare_, name + ".conv", {.in = in, .out = out, .kernel = 3, .padding = 1},
              kaiming_normal(9 * in)),
        norm_(declare_, name + ".norm", out) {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    auto y = norm_(conv_(x, frame), frame);
    if (shortcut_) y += x;
    return y.relu_();
  }

 private:
  bool shortcut_;
  Conv2d conv_;
  BatchNorm2d norm_;
};

class Rows final : public Block {
 public:
  Rows(int index, int count, std::int64_t in, std::int64_t out)
      : Block("rows"),
        part_{index, count},
        linear_(declare_, "rows",
                {.in = in, .out = out, .row_begin = index * out, .total_rows = count * out},
                default_uniform(in), default_uniform(in)) {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    return linear_(x.flatten(1), frame);
  }
  Part part() const override { return part_; }

 private:
  Part part_;
  Linear linear_;
};

/// The same layer twice.
class Twice final : public Block {
 public:
  explicit Twice(std::int64_t width)
      : Block("twice"),
        linear_(declare_, "twice", {.in = width, .out = width}, default_uniform(width),
                default_uniform(width)) {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    return linear_(linear_(x, frame).tanh(), frame);
  }

 private:
  Linear linear_;
};

/// A linear layer after dropout.
class Dropping final : public Block {
 public:
  Dropping(std::int64_t in, std::int64_t out)
      : Block("dropping"),
        dropout_{"dropout", 0.5},
        linear_(declare_, "dropping", {in, out}, default_uniform(in), default_uniform(in)) {}

  at::Tensor forward(at::Tensor const& x, Frame const& frame) const override {
    return linear_(dropout_(x.flatten(1), frame), frame);
  }

 private:
  Dropout dropout_;
  Linear linear_;
};

Blocks residual_net() {
  Blocks blocks;
  blocks.push_back(std::make_unique<Residual>("a", 3, 8));
  blocks.push_back(std::make_unique<Residual>("b", 8, 8));
  blocks.push_back(std::make_unique<Residual>("c", 8, 8));
  blocks.push_back(std::make_unique<Rows>(0, 1, 8 * 6 * 6, 5));
  return blocks;
}

/// Three parts of four rows between two blocks.
Blocks net_with_parts() {
  Blocks blocks;
  blocks.push_back(std::make_unique<Residual>("a", 3, 4));
  for (int i = 0; i < 3; ++i) blocks.push_back(std::make_unique<Rows>(i, 3, 4 * 6 * 6, 4));
  blocks.push_back(std::make_unique<Rows>(0, 1, 12, 5));
  return blocks;
}

Blocks dropping_net() {
  Blocks blocks;
  blocks.push_back(std::make_unique<Residual>("a", 3, 4));
  blocks.push_back(std::make_unique<Dropping>(4 * 6 * 6, 12));
  blocks.push_back(std::make_unique<Dropping>(12, 5));
  return blocks;
}

/// All blocks in one graph, gradients in one call.
std::vector<at::Tensor> whole_graph_gradients(Blocks const& blocks, test::State const& state,
                                              at::Tensor x, at::Tensor const& grad_output,
                                              Context const& context) {
  std::vector<at::Tensor> parameters;
  for (int i = 0; i < static_cast<int>(blocks.size()); ++i) {
    x = blocks[static_cast<std::size_t>(i)]->forward(x, state.frame(i, context));
    for (auto const& parameter : state.parameters(i)) parameters.push_back(parameter);
  }
  return torch::autograd::grad({x}, parameters, {grad_output});
}

void expect_same_bits_as_whole_graph(Blocks const& blocks, at::Tensor const& images,
                                     std::int64_t classes) {
  Context const context{.training = true, .seed = 3};
  auto const grad_output = at::randn({images.size(0), classes});
  test::State const whole(blocks), own(blocks);
  auto const expected = whole_graph_gradients(blocks, whole, images, grad_output, context);
  test::OnePass tape(blocks);
  test::forward(tape, own, images, context);
  EXPECT_FALSE(test::backward(tape, own, grad_output).defined());
  std::size_t next = 0;
  for (int i = 0; i < tape.blocks(); ++i) {
    for (auto const& gradient : own.gradients(i))
      EXPECT_TRUE(at::equal(gradient, expected[next++]));
    for (std::size_t b = 0; b < own.buffers(i).size(); ++b) {
      if (!own.buffers(i)[b].is_floating_point()) continue;  // counts, which the tape sees to
      EXPECT_TRUE(at::equal(own.buffers(i)[b], whole.buffers(i)[b]));
    }
  }
  EXPECT_EQ(next, expected.size());
}

TEST(BlockTape, ResidualNetHasTheGradientsOfTheWholeGraph) {
  expect_same_bits_as_whole_graph(residual_net(), at::randn({4, 3, 6, 6}), 5);
}

TEST(BlockTape, LenetHasTheGradientsOfTheWholeGraph) {
  auto const model = make_model({.name = "lenet"}, {.channels = 1, .size = 28});
  expect_same_bits_as_whole_graph(model.blocks, at::randn({4, 1, 28, 28}), 10);
}

TEST(BlockTape, PartsAreOneLayer) {
  auto const blocks = net_with_parts();
  Context const context{.training = true};
  auto const images = at::randn({4, 3, 6, 6});
  auto const grad_output = at::randn({4, 5});
  test::State const state(blocks);
  test::OnePass tape(blocks);
  auto const logits = test::forward(tape, state, images, context);
  test::backward(tape, state, grad_output);

  test::State const reference(blocks);
  auto const input = blocks[0]->forward(images, reference.frame(0, context));
  std::vector<at::Tensor> weights, biases, wanted = reference.parameters(0);
  for (int part = 1; part <= 3; ++part) {
    weights.push_back(reference.parameters(part)[0]);
    biases.push_back(reference.parameters(part)[1]);
    for (auto const& parameter : reference.parameters(part)) wanted.push_back(parameter);
  }
  auto const hidden = at::linear(input.flatten(1), at::cat(weights), at::cat(biases));
  auto const expected_logits = blocks[4]->forward(hidden, reference.frame(4, context));
  EXPECT_TRUE(at::allclose(logits, expected_logits, 1e-5, 1e-6));
  auto const expected = torch::autograd::grad({expected_logits}, wanted, {grad_output});
  std::size_t next = 0;
  for (int block = 0; block <= 3; ++block)
    for (auto const& gradient : state.gradients(block))
      EXPECT_TRUE(at::allclose(gradient, expected[next++], 1e-4, 1e-5)) << block;
}

TEST(BlockTape, InputGradientOfPartsIsSummedFromTheLastToTheFirst) {
  Blocks blocks;
  blocks.push_back(std::make_unique<Residual>("a", 3, 4));
  for (int i = 0; i < 3; ++i) blocks.push_back(std::make_unique<Rows>(i, 3, 4 * 6 * 6, 4));
  Context const context{.training = true};
  test::State const state(blocks);
  test::OnePass tape(blocks);
  test::forward(tape, state, at::randn({2, 3, 6, 6}), context);
  auto const grad_output = at::randn({2, 12});
  auto joined = grad_output;
  for (int block = 3; block > 1; --block) {
    joined = tape.backward(block, joined, state.gradients(block), GradWrite::overwrite);
    EXPECT_TRUE(at::equal(joined, grad_output));
  }
  auto const sum = tape.backward(1, joined, state.gradients(1), GradWrite::overwrite).flatten(1);
  auto const from = [&](int part) {
    return at::mm(grad_output.narrow(1, 4 * part, 4), state.parameters(part + 1)[0].detach());
  };
  EXPECT_TRUE(at::equal(sum, (from(2) + from(1)) + from(0)));
}

TEST(BlockTape, InferIsForwardWithoutAGraph) {
  auto const blocks = net_with_parts();
  Context const context{};
  auto const images = at::randn({4, 3, 6, 6});
  test::State const state(blocks);
  test::OnePass tape(blocks);
  auto x = images;
  for (int i = 0; i < tape.blocks(); ++i) x = tape.infer(i, x, state.frame(i, context));
  EXPECT_TRUE(at::equal(x, test::forward(tape, state, images, context)));
  EXPECT_FALSE(x.requires_grad());
}

TEST(BlockTape, AddsToWhatAMicroBatchLeft) {
  auto const blocks = residual_net();
  Context const context{.training = true};
  test::State const state(blocks);
  auto const images = at::randn({4, 3, 6, 6});
  auto const grad_output = at::randn({4, 5});
  test::OnePass tape(blocks);
  test::forward(tape, state, images, context);
  test::backward(tape, state, grad_output);
  std::vector<at::Tensor> once;
  for (auto const& gradient : state.gradients(1)) once.push_back(gradient.clone());
  test::forward(tape, state, images, context);
  test::backward(tape, state, grad_output, GradWrite::accumulate);
  for (std::size_t i = 0; i < once.size(); ++i)
    EXPECT_TRUE(at::equal(state.gradients(1)[i], once[i] + once[i]));
}

TEST(BlockTape, GradientsOfALayerThatIsUsedTwiceAddUp) {
  Blocks blocks;
  blocks.push_back(std::make_unique<Twice>(6));
  Context const context{.training = true};
  test::State const state(blocks);
  auto const x = at::randn({4, 6}), grad_output = at::randn({4, 6});
  test::OnePass tape(blocks);
  test::forward(tape, state, x, context);
  test::backward(tape, state, grad_output);
  auto const frame = state.frame(0, context);
  auto const &weight = frame.parameters[0], &bias = frame.parameters[1];
  auto const whole = at::linear(at::linear(x, weight, bias).tanh(), weight, bias);
  auto const expected = torch::autograd::grad({whole}, {weight, bias}, {grad_output});
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(at::allclose(state.gradients(0)[i], expected[i], 1e-5, 1e-6));
}

TEST(BlockTape, CountsThePassesOfATraining) {
  auto const blocks = residual_net();
  test::State const state(blocks);
  Context const context{.training = true}, evaluation;
  auto const images = at::randn({4, 3, 6, 6});
  test::OnePass tape(blocks);
  auto const counted = [&] {
    std::vector<std::int64_t> counts;
    for (int block = 0; block < tape.blocks(); ++block)
      for (auto const& buffer : state.frame(block, context).buffers)
        if (buffer.scalar_type() == at::kLong) counts.push_back(buffer.item<std::int64_t>());
    return counts;
  };
  EXPECT_EQ(counted(), (std::vector<std::int64_t>{0, 0, 0}));
  test::forward(tape, state, images, context);
  auto x = images;
  for (int i = 0; i < tape.blocks(); ++i) x = tape.infer(i, x, state.frame(i, evaluation));
  EXPECT_EQ(counted(), (std::vector<std::int64_t>{1, 1, 1}));
}

TEST(BlockTape, LandsSixteenBitGradientsInWiderViews) {
  auto const model = make_model({.name = "mlp"}, {.channels = 1, .size = 4});
  Context const context{.training = true};
  test::State const narrow(model.blocks, at::kBFloat16), wide(model.blocks);
  test::OnePass tape(model.blocks);
  auto const images = at::randn({4, 1, 4, 4}).to(at::kBFloat16);
  auto const grad_output = at::randn({4, 10}).to(at::kBFloat16);
  test::forward(tape, narrow, images, context);
  test::backward(tape, narrow, grad_output);
  test::forward(tape, narrow, images, context);
  auto gradient = grad_output;
  for (int i = 2; i >= 0; --i)
    gradient = tape.backward(i, gradient, wide.gradients(i), GradWrite::overwrite);
  for (int i = 0; i < 3; ++i)
    for (std::size_t p = 0; p < 2; ++p)
      EXPECT_TRUE(at::equal(wide.gradients(i)[p], narrow.gradients(i)[p].to(at::kFloat)));
}

TEST(BlockTape, NamesTheFirstBlockThatIsNotFinite) {
  auto const blocks = residual_net();
  Context const context{.training = true};
  test::State const state(blocks);
  test::OnePass tape(blocks);
  EXPECT_EQ(tape.first_non_finite(), -1);
  test::forward(tape, state, at::randn({2, 3, 6, 6}), context);
  EXPECT_EQ(tape.first_non_finite(), -1);
  state.parameters(2)[0].detach()[0][0][0][0] = std::numeric_limits<float>::infinity();
  test::forward(tape, state, at::randn({2, 3, 6, 6}), context);
  EXPECT_EQ(tape.first_non_finite(), 2);
}

/// Logits, gradients, and the statistics they leave, of two passes one after the other.
std::vector<at::Tensor> two_passes(Blocks const& blocks, Recompute recompute) {
  test::State const state(blocks);
  test::OnePass tape(blocks, recompute);
  std::vector<at::Tensor> results;
  for (std::int64_t step : {4, 5}) {
    Context const context{.training = true, .seed = 3, .step = step};
    at::manual_seed(2);
    auto const logits = test::forward(tape, state, at::randn({4, 3, 6, 6}), context);
    test::backward(tape, state, at::randn_like(logits));
    results.push_back(logits);
    for (int i = 0; i < tape.blocks(); ++i) {
      for (auto const& gradient : state.gradients(i)) results.push_back(gradient.clone());
      for (auto const& buffer : state.buffers(i)) results.push_back(buffer.clone());
    }
  }
  return results;
}

TEST(BlockTape, RecomputingChangesNoBit) {
  for (auto* make : {residual_net, net_with_parts, dropping_net}) {
    auto const blocks = make();
    auto const expected = two_passes(blocks, {});
    for (int every = 1; every <= 4; ++every) {
      auto const results = two_passes(blocks, {every});
      ASSERT_EQ(results.size(), expected.size());
      for (std::size_t i = 0; i < results.size(); ++i)
        EXPECT_TRUE(at::equal(results[i], expected[i])) << "every " << every << ", tensor " << i;
    }
  }
}

TEST(BlockTape, ARecomputedBlockKeepsItsInputAlone) {
  auto const blocks = residual_net();
  Context const context{.training = true};
  test::State const state(blocks);
  auto const images = at::randn({4, 3, 6, 6});
  auto const activations = [] { return gpu::live_memory({})[gpu::MemoryCategory::activations]; };
  auto const before = activations();
  std::int64_t kept_before = 0;
  for (int const every : {1, 2, 3, 0}) {
    test::OnePass tape(blocks, {every});
    {
      auto const logits = test::forward(tape, state, images, context);
      auto const kept = activations() - before;
      constexpr std::int64_t map = 4 * 8 * 6 * 6 * sizeof(float);
      auto const inputs = 3 * map + static_cast<std::int64_t>(logits.nbytes());
      EXPECT_EQ(kept == inputs, every == 1) << kept;
      EXPECT_GT(kept, kept_before) << every;
      kept_before = kept;
      test::backward(tape, state, at::ones_like(logits));
    }
    EXPECT_EQ(activations(), before) << every;
  }
}

TEST(BlockTape, FreesWhatABlockKept) {
  auto const blocks = residual_net();
  Context const context{.training = true};
  test::State const state(blocks);
  auto const images = at::randn({4, 3, 6, 6});
  auto const activations = [] { return gpu::live_memory({})[gpu::MemoryCategory::activations]; };
  auto const before = activations();
  test::OnePass tape(blocks);
  {
    auto const logits = test::forward(tape, state, images, context);
    EXPECT_GT(activations(), before);
    test::backward(tape, state, at::ones_like(logits));
  }
  EXPECT_EQ(activations(), before);
  test::forward(tape, state, images, context);
  tape.clear();
  EXPECT_EQ(activations(), before);
}

std::vector<at::Tensor> all_of(test::State const& state, int blocks) {
  std::vector<at::Tensor> tensors;
  for (int block = 0; block < blocks; ++block)
    for (auto const* of : {&state.gradients(block), &state.buffers(block)})
      for (auto const& tensor : *of) tensors.push_back(tensor);
  return tensors;
}

void expect_equal(std::vector<at::Tensor> const& a, std::vector<at::Tensor> const& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i], b[i])) << i;
}

/// The passes of micro-batches have the same bits whether one ends before the next begins or not.
TEST(BlockTape, SeveralPassesAreInFlight) {
  auto const blocks = residual_net();
  Context const context{.training = true};
  std::vector<at::Tensor> images, grad_outputs;
  for (int i = 0; i < 3; ++i) {
    images.push_back(at::randn({4, 3, 6, 6}));
    grad_outputs.push_back(at::randn({4, 5}));
  }
  auto const write = [](std::size_t i) {
    return i == 0 ? GradWrite::overwrite : GradWrite::accumulate;
  };
  for (auto const recompute : {Recompute{}, Recompute{.every = 2}}) {
    test::State const one_by_one(blocks), together(blocks);
    test::OnePass alone(blocks, recompute);
    for (std::size_t i = 0; i < images.size(); ++i) {
      test::forward(alone, one_by_one, images[i], context);
      test::backward(alone, one_by_one, grad_outputs[i], write(i));
    }

    BlockTape const tape(blocks, recompute);
    std::vector<TapePass> passes;
    for (auto x : images) {
      auto& pass = passes.emplace_back(tape.begin());
      for (int block = 0; block < tape.blocks(); ++block)
        x = tape.forward(pass, block, x, together.frame(block, context));
    }
    for (std::size_t i = 0; i < passes.size(); ++i) {
      auto gradient = grad_outputs[i];
      for (int block = tape.blocks() - 1; block >= 0; --block)
        gradient = tape.backward(passes[i], block, gradient, together.gradients(block), write(i));
    }
    expect_equal(all_of(together, tape.blocks()), all_of(one_by_one, tape.blocks()));
  }
}

/// Wherever a model is cut, the passes through its ranges are the pass through all of it.
TEST(BlockTape, RangesOfBlocksMakeThePassOfTheWhole) {
  Context const context{.training = true};
  auto const images = at::randn({4, 3, 6, 6});
  auto const grad_output = at::randn({4, 5});
  for (auto const& blocks : {residual_net(), net_with_parts()}) {
    test::State const whole(blocks);
    test::OnePass alone(blocks);
    auto const logits = test::forward(alone, whole, images, context);
    test::backward(alone, whole, grad_output);
    BlockTape const tape(blocks);
    for (int const cut : {1, tape.blocks() - 1}) {
      test::State const own(blocks);
      auto begin = tape.begin({0, cut}, false), end = tape.begin({cut, tape.blocks()}, true);
      auto const pass_of = [&](int block) -> TapePass& { return block < cut ? begin : end; };
      auto x = images, gradient = grad_output;
      for (int block = 0; block < tape.blocks(); ++block)
        x = tape.forward(pass_of(block), block, x, own.frame(block, context));
      EXPECT_TRUE(at::equal(x, logits));
      for (int block = tape.blocks() - 1; block >= 0; --block)
        gradient = tape.backward(pass_of(block), block, gradient, own.gradients(block),
                                 GradWrite::overwrite);
      EXPECT_FALSE(gradient.defined());
      expect_equal(all_of(own, tape.blocks()), all_of(whole, tape.blocks()));
    }
  }
}

/// The gradient of a tied embedding is that of the head plus that of the embedding, with the bits
/// of one backward pass through both.
TEST(BlockTape, GradientsOfBorrowedParametersAddUp) {
  auto const model = make_model(
      {.name = "gpt2", .num_classes = 11, .layers = 1, .heads = 2, .width = 8, .context = 6},
      {.tokens = 6, .vocabulary = 11});
  test::State state(model.blocks);
  auto const last = static_cast<int>(model.blocks.size()) - 1;
  state.lend(0, 0, last);
  Context const context{.training = true};
  auto const tokens = at::randint(11, {3, 6}, at::kLong);
  auto const grad_output = at::randn({3, 6, 11});

  at::Tensor x = tokens;
  std::vector<at::Tensor> wanted = state.parameters(0);
  for (int block = 0; block <= last; ++block)
    x = model.blocks[static_cast<std::size_t>(block)]->forward(x, state.frame(block, context));
  auto const expected = torch::autograd::grad({x}, wanted, {grad_output});

  for (auto const recompute : {Recompute{}, Recompute{.every = 1}}) {
    test::OnePass tape(model.blocks, recompute);
    auto const logits = test::forward(tape, state, tokens, context);
    EXPECT_TRUE(at::equal(logits, x));
    EXPECT_FALSE(test::backward(tape, state, grad_output).defined());
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_TRUE(at::equal(state.gradients(0)[i], expected[i])) << i;
    test::forward(tape, state, tokens, context);
    test::backward(tape, state, grad_output, GradWrite::accumulate);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_TRUE(at::allclose(state.gradients(0)[i], 2 * expected[i])) << i;
  }

  // Each in a range of its own: the head's are there alone, then the embedding's.
  BlockTape const tape(model.blocks);
  auto begin = tape.begin({0, last}, false), end = tape.begin({last, last + 1}, true);
  at::Tensor y = tokens;
  for (int block = 0; block <= last; ++block)
    y = tape.forward(block < last ? begin : end, block, y, state.frame(block, context));
  auto gradient =
      tape.backward(end, last, grad_output, state.gradients(last), GradWrite::overwrite);
  auto const of_head = state.gradients(0)[0].clone();
  for (int block = last - 1; block >= 0; --block)
    gradient = tape.backward(begin, block, gradient, state.gradients(block), GradWrite::overwrite);
  EXPECT_TRUE(at::equal(of_head + state.gradients(0)[0], expected[0]));
}

}  // namespace
}  // namespace stratagem
