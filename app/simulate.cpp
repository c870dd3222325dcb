#include <iostream>

#include <nlohmann/json.hpp>

#include "app/configuration.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "train/local_run.hpp"

namespace stratagem::app {
namespace {

double number(Options const& options, char const* name, double fallback) {
  if (!options.has(name)) return fallback;
  auto const value = parse_number(options.text(name));
  if (!value || *value < 0)
    throw Error(ExitCode::usage, str("--", name, " is ", options.text(name)),
                "a number from 0 on is expected");
  return *value;
}

ClusterModel cluster_of(Options const& options, RunConfig const& config) {
  ClusterModel cluster{.seed = config.run.seed};
  if (auto const* ps = std::get_if<PsConfig>(&config.strategy)) {
    cluster.slow_worker = ps->slow_worker;
    cluster.slow = ps->slow;
  }
  cluster.jitter = number(options, "jitter", cluster.jitter);
  cluster.message = number(options, "message", cluster.message);
  cluster.update = number(options, "update", cluster.update);
  return cluster;
}

std::string text_of(SimulatedEpoch const& epoch) {
  auto const& counts = epoch.counts;
  return str("epoch ", epoch.epoch + 1, "  loss ", format_number(epoch.train_loss, 4), "  test ",
             format_number(100 * epoch.test_accuracy, 2), " %  time ",
             format_number(counts.time, 1), "  idle ", format_number(100 * counts.idle_share, 1),
             " %  server busy ", format_number(100 * counts.server_share, 1), " %  ",
             describe(counts.lags), ", dropped ", counts.dropped, "\n");
}

std::string json_of(SimulatedEpoch const& epoch, int workers) {
  auto const& counts = epoch.counts;
  nlohmann::json const document{{"workers", workers},
                                {"epochs", epoch.epoch + 1},
                                {"train_loss", epoch.train_loss},
                                {"test_accuracy", epoch.test_accuracy},
                                {"time", counts.time},
                                {"idle_share", counts.idle_share},
                                {"server_share", counts.server_share},
                                {"updates", counts.updates},
                                {"pushes", counts.pushes},
                                {"pulls", counts.pulls},
                                {"dropped", counts.dropped},
                                {"overflowed", counts.overflowed},
                                {"lag_mean", counts.lags.mean()},
                                {"lag_p95", counts.lags.quantile(0.95)},
                                {"lag_max", counts.lags.most()}};
  return document.dump() + "\n";
}

}  // namespace

ExitCode execute_simulate(Command const& command, std::vector<std::string> const& arguments) {
  Options options(command);
  add_configuration(options);
  options.add()("workers", text_value(), "of the simulated cluster; else 4")(
      "jitter", text_value(), "standard deviation of the logarithm of a pass's time; else 0.1")(
      "message", text_value(), "time of a gradient or all parameters one way, in passes; else 0.1")(
      "update", text_value(), "time a push keeps the server busy, in passes; else 0.01")(
      "json", flag_value(), "only the end, on one line of JSON");
  if (!options.parse(arguments)) return ExitCode::done;
  auto const config = read_configuration(options);
  int const workers =
      options.has("workers") ? static_cast<int>(options.integer("workers", 1, 1024)) : 4;
  bool const as_json = options.flag("json");
  auto const last =
      simulate_run(config, cluster_of(options, config), workers, [&](SimulatedEpoch const& epoch) {
        if (!as_json) std::cout << text_of(epoch) << std::flush;
      });
  if (as_json) std::cout << json_of(last, workers);
  return ExitCode::done;
}

}  // namespace stratagem::app
