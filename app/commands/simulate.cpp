#include <iostream>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/configuration.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "offline/local_run.hpp"

namespace stratagem::app {
namespace {

double number(Options const& options, char const* name) {
  auto const value = parse_number(options.text(name));
  if (!value || *value < 0)
    throw Error(ExitCode::usage, str("--", name, " is ", options.text(name)),
                "a number from 0 on is expected");
  return *value;
}

ClusterModel cluster_of(Options const& options, RunConfig const& config) {
  ClusterModel cluster{.seed = config.run.seed};
  cluster.jitter = number(options, "jitter");
  cluster.message = number(options, "message");
  cluster.update = number(options, "update");
  return cluster;
}

/// What the times of a simulation follow from.
std::string text_of(ClusterModel const& cluster) {
  auto const slow = cluster.slow_worker < 0 ? "no slow worker"
                                            : str("worker ", cluster.slow_worker, " slower by ",
                                                  shortest(cluster.slow));
  return str("times are predicted, in mean steps of a worker: message ", shortest(cluster.message),
             ", update ", shortest(cluster.update), ", jitter ", shortest(cluster.jitter), ", ",
             slow, "\n");
}

std::string text_of(SimulatedEpoch const& epoch) {
  auto const& counts = epoch.counts;
  return str("epoch ", epoch.epoch + 1, "  loss ", format_number(epoch.train_loss, 4), "  test ",
             format_number(epoch.test.loss, 4), ", ", format_number(100 * epoch.test.accuracy, 2),
             " %  predicted time ", format_number(counts.time, 1), "  idle ",
             format_number(100 * counts.idle_share, 1), " %  server busy ",
             format_number(100 * counts.server_share, 1), " %  ", describe(counts.lags),
             ", dropped ", counts.dropped, "\n");
}

nlohmann::json curve_of(std::vector<SimulatedEpoch> const& evaluated) {
  auto curve = nlohmann::json::array();
  for (auto const& epoch : evaluated)
    curve.push_back({{"epoch", epoch.epoch + 1},
                     {"train_loss", epoch.train_loss},
                     {"test_loss", epoch.test.loss},
                     {"test_accuracy", epoch.test.accuracy},
                     {"predicted_time", epoch.counts.time}});
  return curve;
}

std::string json_of(std::vector<SimulatedEpoch> const& evaluated, int workers) {
  auto const& last = evaluated.back();
  auto const& counts = last.counts;
  auto const& cluster = last.cluster;
  nlohmann::json const document{{"workers", workers},
                                {"epochs", last.epoch + 1},
                                {"train_loss", last.train_loss},
                                {"test_loss", last.test.loss},
                                {"test_accuracy", last.test.accuracy},
                                {"curve", curve_of(evaluated)},
                                {"predicted_time", counts.time},
                                {"idle_share", counts.idle_share},
                                {"server_share", counts.server_share},
                                {"updates", counts.updates},
                                {"pushes", counts.pushes},
                                {"pulls", counts.pulls},
                                {"dropped", counts.dropped},
                                {"overflowed", counts.overflowed},
                                {"lag_mean", counts.lags.mean()},
                                {"lag_p95", counts.lags.quantile(0.95)},
                                {"lag_max", counts.lags.most()},
                                {"cluster",
                                 {{"message", cluster.message},
                                  {"update", cluster.update},
                                  {"jitter", cluster.jitter},
                                  {"slow_worker", cluster.slow_worker},
                                  {"slow", cluster.slow}}}};
  return document.dump() + "\n";
}

}  // namespace

void declare_simulate(Options& options) {
  options.add_word({.name = "CONFIG", .meaning = config_file});
  add_run_overrides(options);
  options.add(
      {.name = "workers", .value = "N", .fallback = "4", .meaning = "of the simulated cluster"});
  options.add({.name = "jitter",
               .value = "X",
               .fallback = "0.1",
               .meaning = "standard deviation of the logarithm of a step's time"});
  options.add(
      {.name = "message",
       .value = "X",
       .fallback = "0.1",
       .meaning = "time of a gradient or of all parameters one way, in mean steps of a worker"});
  options.add({.name = "update",
               .value = "X",
               .fallback = "0.01",
               .meaning = "time a push keeps the server busy, in mean steps of a worker"});
  options.add({.name = "json",
               .meaning = "the end, and a curve of the evaluated epochs, on one line of JSON"});
  options.add_example("stratagem simulate inputs/smoke/digits-lenet-ps.yaml --workers 8",
                      "accuracy and lag of eight asynchronous workers");
}

ExitCode execute_simulate(Options const& options) {
  auto const config = read_configuration(options);
  auto const workers = static_cast<int>(options.integer("workers", 1, 1024));
  bool const as_json = options.flag("json");
  std::vector<SimulatedEpoch> evaluated;
  simulate_run(config, cluster_of(options, config), workers, [&](SimulatedEpoch const& epoch) {
    evaluated.push_back(epoch);
    if (!as_json) std::cout << text_of(epoch) << std::flush;
  });
  std::cout << (as_json ? json_of(evaluated, workers) : text_of(evaluated.back().cluster));
  return ExitCode::done;
}

}  // namespace stratagem::app
