#include "conformance/local_workers.hpp"

#include <algorithm>

#include <ATen/ATen.h>

#include "comm/serial/serial_world.hpp"

namespace stratagem::test {
namespace {

/// One parameter's element, with all it had before.
struct OuterElement {
  double begin = 0;
  std::vector<double> differences;
};

std::vector<OuterElement> outer_elements(NamedTensors const& parameters) {
  std::vector<OuterElement> elements;
  for (auto const& [name, tensor] : parameters) {
    auto const values = tensor.to(at::kDouble).contiguous();
    for (std::int64_t i = 0; i < values.numel(); ++i)
      elements.push_back({.begin = values.data_ptr<double>()[i], .differences = {}});
  }
  return elements;
}

NamedTensors outer_step(std::vector<OuterElement>& elements, NamedTensors const& mean,
                        Outer const& outer) {
  NamedTensors moved;
  auto element = elements.begin();
  for (auto const& [name, tensor] : mean) {
    auto const values = tensor.to(at::kDouble).contiguous().clone();
    for (std::int64_t i = 0; i < values.numel(); ++i, ++element) {
      auto& [begin, differences] = *element;
      differences.push_back(begin - values.data_ptr<double>()[i]);
      double sum = 0, weight = 1;
      for (auto d = differences.rbegin(); d != differences.rend(); ++d, weight *= outer.momentum)
        sum += weight * *d;
      begin -= outer.lr * (differences.back() + outer.momentum * sum);
      values.data_ptr<double>()[i] = begin;
    }
    moved.emplace_back(name, values.to(tensor.scalar_type()));
  }
  return moved;
}

}  // namespace

NamedTensors mean_of(std::vector<NamedTensors> const& workers) {
  auto mean = workers.front();
  for (std::size_t i = 0; i < mean.size(); ++i) {
    auto& tensor = mean[i].second;
    for (std::size_t worker = 1; worker < workers.size(); ++worker)
      tensor = tensor + workers[worker][i].second;
    tensor = tensor * (1.0 / static_cast<double>(workers.size()));
  }
  return mean;
}

double greatest_distance(NamedTensors const& a, NamedTensors const& b) {
  double greatest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    greatest = std::max(greatest, (a[i].second - b[i].second).abs().max().item<double>());
  return greatest;
}

std::string digest_on(Training const& training, Communicator& communicator) {
  auto with_own = training;
  std::string own;
  with_own.after = [&](Participant& participant, Communicator& all) {
    auto const model = test_model(training.model);
    auto const state = participant.state();
    for (auto const& of : state.of_parameters)
      own += of.kind + " " + digest_of(gather(state, of.kind, model, all_tensors, all, of.worker));
  };
  auto const trained = train(with_own, communicator);
  return digest_of(trained.parameters) + " " + digest_of(trained.buffers) + " " + own;
}

std::string digest_alone(Training const& training) {
  SerialWorld alone({});
  return digest_on(training, alone.all());
}

void run_serials(Training training, int workers, Exchange const& exchange) {
  training.strategy = SerialConfig{};
  auto const model = test_model(training.model);
  SerialWorld alone({});
  trace::Recorder recorder({}, 0);
  std::vector<Member> members;
  std::vector<NamedTensors> parameters;
  auto const fetch = [&](Member const& member) {
    return gather(member.strategy->state(), State::parameters, model, all_tensors, alone.all());
  };
  for (int worker = 0; worker < workers; ++worker) {
    members.push_back(make_member(training.strategy, parts_of(training, model, alone, recorder)));
    parameters.push_back(fetch(members.back()));
  }
  exchange(-1, parameters);
  for (std::int64_t step = 0; step < training.steps; ++step) {
    for (std::size_t worker = 0; worker < members.size(); ++worker) {
      auto& serial = *members[worker].strategy;
      auto const first_slot = training.global_batch * static_cast<std::int64_t>(worker) / workers;
      serial.step(training_batch(training, step, first_slot, workers),
                  {.lr = training.optimizer.lr});
      parameters[worker] = fetch(members[worker]);
    }
    exchange(step, parameters);
    for (std::size_t worker = 0; worker < members.size(); ++worker) {
      auto const& own = parameters[worker];
      load(members[worker].strategy->state(), State::parameters, model, {own.begin(), own.end()});
      members[worker].strategy->state_replaced();
    }
  }
}

NamedTensors averaged_serials(Training const& training, int workers, int inner_steps,
                              std::optional<Outer> const& outer) {
  NamedTensors mean;
  std::vector<OuterElement> elements;
  run_serials(training, workers, [&](std::int64_t step, std::vector<NamedTensors>& parameters) {
    if (step < 0) {
      elements = outer_elements(parameters.front());
      return;
    }
    mean = mean_of(parameters);
    if ((step + 1) % inner_steps != 0) return;
    if (outer) mean = outer_step(elements, mean, *outer);
    for (auto& own : parameters) own = mean;
  });
  return mean;
}

namespace {

/// A tensor with what is under way of it, and its outer step in fp64.
struct StreamedTensor {
  at::Tensor arriving, begin, momentum;

  at::Tensor take(std::optional<Outer> const& outer) {
    if (!outer) return arriving;
    auto const difference = begin - arriving;
    momentum = momentum * outer->momentum + difference;
    begin = begin - (difference + momentum * outer->momentum) * outer->lr;
    return begin.to(arriving.scalar_type());
  }
};

}  // namespace

NamedTensors streamed_serials(Training const& training, int workers, Streaming const& streaming) {
  auto const inner_steps = streaming.inner_steps;
  auto const kept = streaming.mixing_factor;
  std::vector<StreamedTensor> tensors;
  NamedTensors mean;
  run_serials(training, workers, [&](std::int64_t step, std::vector<NamedTensors>& parameters) {
    if (step < 0) {
      for (auto const& [name, tensor] : parameters.front())
        tensors.push_back({{}, tensor.to(at::kDouble), at::zeros_like(tensor, at::kDouble)});
      return;
    }
    auto const now = mean_of(parameters);
    for (std::size_t i = 0; i < now.size(); ++i) {
      auto const turn = (streaming.fragment_of(now[i].first) + 1) * inner_steps /
                        streaming.fragments % inner_steps;
      auto const sent = step + 1, taken = sent - streaming.delay;
      if (sent % inner_steps == turn) tensors[i].arriving = now[i].second;
      if (taken <= 0 || taken % inner_steps != turn) continue;
      auto const arrived = tensors[i].take(streaming.outer);
      for (auto& own : parameters) {
        auto& tensor = own[i].second;
        tensor = kept == 0 ? arrived : tensor * kept + arrived * (1 - kept);
      }
    }
    mean = mean_of(parameters);
  });
  return mean;
}

}  // namespace stratagem::test
