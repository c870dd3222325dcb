#include "offline/text_sampler.hpp"

#include <algorithm>
#include <vector>

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "model/zoo/transformer_sizes.hpp"
#include "plan/run_plan.hpp"

namespace stratagem {
namespace {

Model model_of(RunConfig const& config) {
  if (!takes_text(config.model))
    throw Error(ExitCode::usage, "model " + config.model.name + " takes no text",
                "only a model of text continues one", "name a run of a model such as gpt2");
  return make_model(config.model, input_shape(config));
}

/// With probability proportional to `weights`, fp64; `draw` in (0, 1].
std::int64_t drawn(at::Tensor const& weights, double draw) {
  auto const sums = weights.cumsum(0);
  auto const* first = sums.const_data_ptr<double>();
  auto const wanted = draw * sums[-1].item<double>();
  auto const found = std::lower_bound(first, first + sums.numel(), wanted);
  return std::min<std::int64_t>(found - first, sums.numel() - 1);
}

}  // namespace

TextSampler::TextSampler(RunConfig const& config, TensorMap weights)
    : model_(model_of(config)),
      replica_(model_, Precision::fp32, {}, config.run.seed),
      buffers_(make_buffers(model_, {}, Precision::fp32)),
      tape_(model_.blocks),
      pass_(tape_.begin()),
      length_(config.data.seq_len) {
  replica_.load(match_weights(model_, std::move(weights), HeadWeights::strict, "of the run"));
}

std::int64_t TextSampler::next(std::span<std::int64_t const> text, Sampling const& sampling) {
  expects(!text.empty(), "there is a text to continue");
  at::NoGradGuard const no_grad;
  auto const seen = text.last(std::min(text.size(), static_cast<std::size_t>(length_)));
  auto const inputs = at::tensor(at::ArrayRef<std::int64_t>(seen.data(), seen.size()), at::kLong);
  auto const logits = logits_of(inputs);
  if (sampling.temperature == 0) return logits.argmax().item<std::int64_t>();
  auto const all = logits.numel();
  auto const k = sampling.top_k > 0 ? std::min(sampling.top_k, all) : all;
  auto const [highest, tokens] = logits.topk(k);
  auto const probabilities = (highest / sampling.temperature).softmax(0);
  CounterRandom const random(sampling.seed, "sample");
  auto const place = drawn(probabilities, to_positive_unit(random.word(text.size())));
  return tokens[place].item<std::int64_t>();
}

at::Tensor TextSampler::logits_of(at::Tensor const& text) {
  at::Tensor x = text.unsqueeze(0);
  for (int block = 0; block < tape_.blocks(); ++block)
    x = tape_.infer(pass_, block, x,
                    {replica_.parameters(block), buffers_[static_cast<std::size_t>(block)], {}});
  return x[0][-1].to(at::kDouble);
}

}  // namespace stratagem
