// Runs a model of the zoo, or of a file of torch.export, on given weights and inputs and writes
// what it computed, for oracle.py.
//
//   oracle_program MODEL eval|train|masked STEPS INPUT OUTPUT [KEY=NUMBER...]
//
// Keys are those of a transformer: layers, heads, width, patch, context, dropout_rate; and classes,
// size and tokens.
// INPUT holds the state by its names, `input.images`, `input.labels`, and for every layer that
// drops `mask.<layer>`: elements per sample and probability. OUTPUT holds `logits`, `loss`,
// `gradient.*` of a first pass, `mask.*` as it kept them (masked), and after STEPS steps `state.*`:
// of SGD with momentum, or of AdamW for a transformer.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "model/layers.hpp"
#include "model/weights.hpp"
#include "optim/optimizer.hpp"
#include "support/one_pass.hpp"

namespace stratagem {
namespace {

constexpr double kLearningRate = 1e-5, kMomentum = 0.9, kWeightDecay = 0.1;

at::Tensor take(TensorMap& file, std::string const& name) {
  auto found = file.extract(name);
  if (found.empty()) throw Error(ExitCode::bad_data, stratagem::str("no tensor ", name));
  return found.mapped();
}

/// All tensors with this prefix, without it.
TensorMap take_all(TensorMap& file, std::string const& prefix) {
  TensorMap taken;
  for (auto it = file.lower_bound(prefix); it != file.end() && it->first.starts_with(prefix);) {
    taken.emplace(it->first.substr(prefix.size()), it->second);
    it = file.erase(it);
  }
  return taken;
}

/// A model's whole tensors, and every block's leaves and gradients as views of them.
class Replica {
 public:
  Replica(Model const& model, TensorMap state) : model_(model), state_(std::move(state)) {
    for (auto const& block : model.blocks) {
      auto& own = blocks_.emplace_back();
      for (auto const& spec : block->declaration().parameters()) {
        auto const& whole = state_.at(spec.name);
        auto const gradient =
            gradients_.try_emplace(spec.name, at::zeros_like(whole)).first->second;
        own.parameters.push_back(rows(whole, spec).detach().requires_grad_(true));
        own.gradients.push_back(rows(gradient, spec));
      }
      for (auto const& name : block->declaration().borrowed()) {
        own.parameters.push_back(state_.at(name).detach().requires_grad_(true));
        own.gradients.push_back(gradients_.at(name));
      }
      for (auto const& spec : block->declaration().buffers())
        own.buffers.push_back(state_.at(spec.name));
    }
  }

  struct Result {
    at::Tensor logits, loss;
  };
  Result forward_backward(at::Tensor const& images, at::Tensor const& labels,
                          Context const& context) {
    test::OnePass tape(model_.blocks);
    auto x = images;
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      x = tape.forward(static_cast<int>(i), x,
                       {blocks_[i].parameters, blocks_[i].buffers, context});
    auto const logits = x.detach().requires_grad_(true);
    auto const loss = at::cross_entropy_loss(logits.flatten(0, -2), labels.flatten());
    auto gradient = torch::autograd::grad({loss}, {logits})[0];
    for (std::size_t i = blocks_.size(); i-- > 0;)
      gradient =
          tape.backward(static_cast<int>(i), gradient, blocks_[i].gradients, GradWrite::overwrite);
    return {logits.detach(), loss.detach()};
  }

  void sgd_step() {
    at::NoGradGuard const no_gradients;
    for (auto const& [name, gradient] : gradients_) {
      auto& momentum = momenta_.try_emplace(name, at::zeros_like(gradient)).first->second;
      momentum.mul_(kMomentum).add_(gradient);
      state_.at(name).sub_(momentum, kLearningRate);
    }
  }

  void adamw_step() {
    at::NoGradGuard const no_gradients;
    for (auto const& [name, gradient] : gradients_) {
      auto& rule = rules_[name];
      if (!rule)
        rule = make_optimizer({.weight_decay = kWeightDecay, .rule = AdamwConfig{}},
                              {.size = gradient.numel()}, gradient.options());
      rule->begin_update();
      rule->update({0, gradient.numel()}, state_.at(name).flatten(), gradient.flatten(),
                   kLearningRate, 1);
    }
  }

  TensorMap const& state() const { return state_; }
  TensorMap const& gradients() const { return gradients_; }

 private:
  static at::Tensor rows(at::Tensor const& whole, ParameterSpec const& spec) {
    return spec.is_part() ? whole.narrow(0, spec.row_begin, spec.shape[0]) : whole;
  }

  struct Own {
    std::vector<at::Tensor> parameters, buffers, gradients;
  };
  Model const& model_;
  TensorMap state_, gradients_, momenta_;
  std::map<std::string, std::unique_ptr<Optimizer>> rules_;
  std::vector<Own> blocks_;
};

Model model_of(std::string const& name, std::map<std::string, double> const& keys) {
  if (name.ends_with(".pt2"))
    return make_model({.name = name, .file = name, .num_classes = 0}, {.size = 0});
  auto const number = [&](std::string const& key, std::int64_t fallback) {
    auto const found = keys.find(key);
    return found == keys.end() ? fallback : static_cast<std::int64_t>(found->second);
  };
  return make_model({.name = name,
                     .num_classes = number("classes", 10),
                     .layers = number("layers", 0),
                     .heads = number("heads", 0),
                     .width = number("width", 0),
                     .patch = number("patch", 0),
                     .context = number("context", 0),
                     .dropout_rate = keys.contains("dropout_rate") ? keys.at("dropout_rate") : 0},
                    {.size = number("size", 32), .tokens = number("tokens", 0)});
}

void run(std::string const& name, std::string const& mode, int steps, std::string const& input,
         std::string const& output, std::map<std::string, double> const& keys) {
  auto const model = model_of(name, keys);
  auto file = read_safetensors(input);
  auto const images = take(file, "input.images");
  auto const labels = take(file, "input.labels");
  auto const droppers = take_all(file, "mask.");
  Replica replica(model, match_weights(model, std::move(file), HeadWeights::strict, input));

  Context const context{.training = mode != "eval",
                        .dropout = mode == "masked",
                        .seed = 11,
                        .step = 3,
                        .first_slot = 5};
  std::vector<std::pair<std::string, at::Tensor>> results;
  auto const [logits, loss] = replica.forward_backward(images, labels, context);
  results.emplace_back("logits", logits);
  results.emplace_back("loss", loss);
  for (auto const& [key, gradient] : replica.gradients())
    results.emplace_back("gradient." + key, steps > 0 ? gradient.clone() : gradient);
  if (context.dropout)
    for (auto const& [key, wanted] : droppers)
      results.emplace_back("mask." + key,
                           keep_mask(context, key, images.size(0), wanted[0].item<std::int64_t>(),
                                     wanted[1].item<double>()));
  for (int step = 0; step < steps; ++step) {
    if (step > 0) replica.forward_backward(images, labels, context);
    if (keys.empty())
      replica.sgd_step();
    else
      replica.adamw_step();
  }
  for (auto const& tensor : state_of(model))
    if (steps > 0) results.emplace_back("state." + tensor.name, replica.state().at(tensor.name));
  write_safetensors(output, results);
}

}  // namespace
}  // namespace stratagem

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fputs("usage: oracle_program MODEL eval|train|masked STEPS INPUT OUTPUT [KEY=NUMBER...]\n",
               stderr);
    return 2;
  }
  at::set_num_threads(1);
  try {
    std::map<std::string, double> keys;
    for (int i = 6; i < argc; ++i) {
      std::string const setting = argv[i];
      auto const equals = setting.find('=');
      keys[setting.substr(0, equals)] = std::stod(setting.substr(equals + 1));
    }
    stratagem::run(argv[1], argv[2], std::atoi(argv[3]), argv[4], argv[5], keys);
  } catch (std::exception const& error) {
    std::fprintf(stderr, "oracle_program: %s\n", error.what());
    return 1;
  }
}
