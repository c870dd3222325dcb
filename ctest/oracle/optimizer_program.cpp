// Makes updates with an optimizer, for optimizers.py.
//
//   optimizer_program NAME STEPS INPUT OUTPUT KEY=VALUE...
//
// NAME and keys are those of section `optimizer`. INPUT holds `parameter.<name>` and, for each
// step, `gradient.<step>.<name>`; OUTPUT the parameters after the steps, and `<kind>.<name>` of the
// optimizer's state.
#include <cstdio>
#include <cstdlib>

#include <ATen/ATen.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "model/safetensors.hpp"
#include "optim/optimizer.hpp"

namespace stratagem {
namespace {

constexpr char parameter[] = "parameter.";

OptimizerConfig config_of(std::string const& name, std::vector<std::string> const& settings) {
  for (auto config : all_optimizers()) {
    if (name_of(config) != name) continue;
    for (auto const& setting : settings) {
      auto const equals = setting.find('=');
      bool known = false;
      for (auto const& key : keys_of(config)) {
        if (key.path != setting.substr(0, equals)) continue;
        known = !key.value.set({setting.substr(equals + 1)});
      }
      if (!known) throw Error(ExitCode::usage, "no such setting: " + setting);
    }
    return config;
  }
  throw Error(ExitCode::usage, "no such optimizer: " + name);
}

void run(std::string const& name, int steps, std::string const& input, std::string const& output,
         std::vector<std::string> const& settings) {
  auto const config = config_of(name, settings);
  auto const file = read_safetensors(input);
  std::vector<std::pair<std::string, at::Tensor>> parts;  // of the flat space, in its order
  OwnedElements elements;
  for (auto const& [key, tensor] : file) {
    if (!key.starts_with(parameter)) continue;
    parts.emplace_back(key.substr(sizeof(parameter) - 1), tensor);
    if (tensor.dim() == 1)
      elements.vectors.push_back({elements.size, elements.size + tensor.numel()});
    elements.size += tensor.numel();
  }
  auto const flat = [&](auto const& of) {
    std::vector<at::Tensor> pieces;
    for (auto const& [part, tensor] : parts) pieces.push_back(of(part).flatten());
    return at::cat(pieces);
  };
  auto const parameters = flat([&](auto const& part) { return file.at(parameter + part); });
  auto const optimizer = make_optimizer(config, elements, parameters.options());
  for (int step = 0; step < steps; ++step) {
    auto const gradients =
        flat([&](auto const& part) { return file.at(str("gradient.", step, '.', part)); });
    optimizer->begin_update();
    optimizer->update({0, elements.size}, parameters, gradients, config.lr, 1);
  }
  std::vector<std::pair<std::string, at::Tensor>> results;
  auto const add = [&](std::string const& kind, at::Tensor const& values) {
    std::int64_t begin = 0;
    for (auto const& [part, tensor] : parts) {
      results.emplace_back(kind + "." + part,
                           values.narrow(0, begin, tensor.numel()).view(tensor.sizes()).clone());
      begin += tensor.numel();
    }
  };
  add("parameter", parameters);
  for (auto const& [kind, values] : optimizer->state()) add(kind, values);
  write_safetensors(output, results);
}

}  // namespace
}  // namespace stratagem

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fputs("usage: optimizer_program NAME STEPS INPUT OUTPUT KEY=VALUE...\n", stderr);
    return 2;
  }
  try {
    stratagem::run(argv[1], std::atoi(argv[2]), argv[3], argv[4], {argv + 5, argv + argc});
  } catch (std::exception const& error) {
    std::fprintf(stderr, "optimizer_program: %s\n", error.what());
    return 1;
  }
}
