#include "conformance/training.hpp"

#include <ATen/ATen.h>

#include "base/hash.hpp"
#include "data/loader.hpp"
#include "model/zoo/lenet.hpp"
#include "strategy/factory.hpp"
#include "strategy/model_layout.hpp"
#include "support/tiny_models.hpp"

namespace stratagem::test {
namespace {

Dataset const& digits() {
  static Dataset const dataset = load_dataset({.dataset = "synthetic-digits", .subset = 600});
  return dataset;
}

}  // namespace

Model test_model(std::string const& name) {
  if (name == "tiny_residual") return tiny_residual(1, 10);
  if (name == "tiny_odd") return tiny_odd(1, 10);
  auto model = make_lenet({.name = "lenet"}, {.channels = 1, .size = 28});
  model.memory_format = MemoryFormat::channels_last;
  return model;
}

Trained train(Training const& training, Communicator& communicator) {
  auto const model = test_model(training.model);
  trace::Recorder recorder({}, 0);
  auto const strategy = make_strategy(training.strategy, {.model = model,
                                                          .communicator = communicator,
                                                          .recorder = recorder,
                                                          .device = {},
                                                          .optimizer = training.optimizer,
                                                          .precision = training.precision,
                                                          .seed = 7,
                                                          .recompute = training.recompute});
  Loader loader(digits(),
                {.channels = 1,
                 .size = 28,
                 .type = compute_type(training.precision.compute),
                 .memory_format = model.memory_format == MemoryFormat::channels_last
                                      ? at::MemoryFormat::ChannelsLast
                                      : at::MemoryFormat::Contiguous},
                {.seed = 7,
                 .global_batch = training.global_batch,
                 .slice = {communicator.rank(), communicator.size()},
                 .end_step = training.steps},
                nullptr);
  Trained trained;
  while (auto const batch = loader.next()) {
    recorder.begin_step(batch->step, batch->epoch);
    auto const sent = communicator.bytes_sent();
    auto const result = strategy->step(*batch, {.lr = training.optimizer.lr});
    trained.losses.push_back(result.loss);
    trained.correct.push_back(result.correct);
    trained.bytes_sent.push_back(communicator.bytes_sent() - sent);
  }
  strategy->drain();
  trained.parameters = strategy->gather_parameters();
  trained.momentum = strategy->gather_momentum();
  trained.buffers = strategy->gather_buffers();
  return trained;
}

std::string fingerprint(Trained const& trained) {
  Hash hash;
  stratagem::add(hash, trained.parameters);
  stratagem::add(hash, trained.momentum);
  stratagem::add(hash, trained.buffers);
  for (auto const correct : trained.correct) hash.add(static_cast<std::uint64_t>(correct));
  return hash.hex();
}

}  // namespace stratagem::test
