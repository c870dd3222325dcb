#include "strategy/ps/loss_scales.hpp"

#include <ATen/ATen.h>

#include "base/text.hpp"

namespace stratagem {
namespace {

constexpr auto scale_name = GradientScale::scale_name,
               good_steps_name = GradientScale::good_steps_name;

std::string name_of(char const* name, int worker) {
  return str(name, "/", worker);
}

}  // namespace

std::map<std::string, double> join_loss_scales(GradientScale const& own, int worker, int workers,
                                               Communicator& communicator) {
  auto const of_own = own.counters();
  if (of_own.empty()) return {};
  auto const all = at::zeros({2 * workers}, at::kDouble);
  auto* values = all.data_ptr<double>();
  if (worker >= 0) {
    values[2 * worker] = of_own.at(scale_name);
    values[2 * worker + 1] = of_own.at(good_steps_name);
  }
  communicator.all_reduce(all).wait_on_host();
  std::map<std::string, double> counters;
  int least = 0;
  for (int i = 0; i < workers; ++i) {
    counters[name_of(scale_name, i)] = values[2 * i];
    counters[name_of(good_steps_name, i)] = values[2 * i + 1];
    if (values[2 * i] < values[2 * least]) least = i;
  }
  counters[scale_name] = values[2 * least];
  counters[good_steps_name] = values[2 * least + 1];
  return counters;
}

std::map<std::string, double> loss_scale_of(int worker,
                                            std::map<std::string, double> const& counters) {
  auto found = counters;
  for (auto const* name : {scale_name, good_steps_name})
    if (auto const own = counters.find(name_of(name, worker)); own != counters.end())
      found[name] = own->second;
  return found;
}

}  // namespace stratagem
