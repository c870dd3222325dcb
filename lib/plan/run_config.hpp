#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "comm/comm_config.hpp"
#include "comm/watchdog/watchdog_config.hpp"
#include "data/data_config.hpp"
#include "model/model_config.hpp"
#include "optim/optim_config.hpp"
#include "plan/checkpoint_config.hpp"
#include "plan/integrity_config.hpp"
#include "strategy/strategy_config.hpp"
#include "trace/trace_config.hpp"

namespace stratagem {

enum class DeviceChoice { automatic, cpu, cuda };
/// In the order of DeviceChoice.
inline constexpr std::array device_names{"auto", "cpu", "cuda"};

/// Whether a GPU keeps the work of steps as a graph; automatic: where it can be kept.
enum class GraphMode { automatic, on, off };

/// Section `run` of the configuration.
struct RunOptions {
  std::string name;  ///< for people; empty: <model>-<strategy>
  std::uint64_t seed = 1;
  int ranks = 0;    ///< 0 takes what the launcher gave, else it is checked
  int threads = 0;  ///< of LibTorch per rank; 0: usable cores / ranks on them
  DeviceChoice device = DeviceChoice::automatic;
  bool deterministic = false;  ///< on a GPU: kernels that give the same bits each time
  GraphMode graph = GraphMode::automatic;
  std::int64_t epochs = 10;         ///< 0 evaluates only
  std::int64_t max_steps = 0;       ///< 0: as many as the epochs have
  double max_time_s = 0;            ///< of training, evaluation and saving apart; 0: no limit
  std::int64_t evaluate_every = 1;  ///< epochs; 0 never
  std::string out;                  ///< run directory; empty: runs/<name>
  std::string save_weights;         ///< safetensors file of the final weights; empty writes none
};

/// Everything a user may say about one run: the sections of the configuration file.
struct RunConfig {
  RunOptions run;
  std::map<std::string, std::string> expect;  ///< facts without which the run must not start
  DataConfig data;
  ModelConfig model;
  PrecisionConfig precision;
  OptimizerConfig optimizer;
  StrategyConfig strategy = default_strategy();
  CommConfig comm;
  trace::TraceConfig trace;
  CheckpointConfig checkpoint;
  WatchdogConfig watchdog;
  IntegrityConfig integrity;
};

}  // namespace stratagem
