#pragma once

#include <string_view>

namespace stratagem {

/// How the program ends. All ranks have the same code where the program can choose it.
enum class ExitCode : int {
  done = 0,
  unexpected = 1,
  usage = 2,
  environment = 3,
  does_not_fit = 4,
  bad_data = 5,
  io = 6,
  checkpoint = 7,
  cells_missing = 8,
  saved = 75,
  peer_lost = 80,
  stall = 81,
  mismatch = 82,
  diverged = 83,
  non_finite = 84,
  out_of_memory = 86,
};

/// One line of explanation, as `--help` and the README print it.
constexpr std::string_view describe(ExitCode code) {
  switch (code) {
    case ExitCode::done:
      return "done";
    case ExitCode::unexpected:
      return "unexpected error";
    case ExitCode::usage:
      return "usage or configuration";
    case ExitCode::environment:
      return "environment (launcher, ranks, GPU, driver, libraries)";
    case ExitCode::does_not_fit:
      return "predicted not to fit";
    case ExitCode::bad_data:
      return "bad data";
    case ExitCode::io:
      return "I/O";
    case ExitCode::checkpoint:
      return "checkpoint unusable";
    case ExitCode::cells_missing:
      return "cells of a study are not complete";
    case ExitCode::saved:
      return "saved on signal, run again";
    case ExitCode::peer_lost:
      return "peer lost";
    case ExitCode::stall:
      return "stall";
    case ExitCode::mismatch:
      return "collective mismatch";
    case ExitCode::diverged:
      return "replicas diverged";
    case ExitCode::non_finite:
      return "non-finite loss or gradient";
    case ExitCode::out_of_memory:
      return "out of memory";
  }
  return "unknown";
}

inline constexpr ExitCode all_exit_codes[] = {
    ExitCode::done,          ExitCode::unexpected, ExitCode::usage,      ExitCode::environment,
    ExitCode::does_not_fit,  ExitCode::bad_data,   ExitCode::io,         ExitCode::checkpoint,
    ExitCode::cells_missing, ExitCode::saved,      ExitCode::peer_lost,  ExitCode::stall,
    ExitCode::mismatch,      ExitCode::diverged,   ExitCode::non_finite, ExitCode::out_of_memory};

constexpr int to_int(ExitCode code) {
  return static_cast<int>(code);
}

}  // namespace stratagem
