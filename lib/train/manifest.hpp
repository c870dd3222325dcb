#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "comm/process_info.hpp"
#include "data/dataset.hpp"
#include "plan/run_plan.hpp"

namespace stratagem {

/// One rank's place, as all ranks send it to rank 0: a line of JSON.
std::string rank_facts(ProcessInfo const& process, Dataset const& dataset);

/// manifest.json: what a reader needs to make the run again, and to trust its numbers.
struct Manifest {
  std::vector<std::string> arguments;   ///< of the command line
  std::vector<std::string> rank_facts;  ///< by rank
  std::string mpi_library;
  int threads = 1;
  int attempt = 0;
  std::map<std::string, std::string> facts;  ///< on which the numbers depend
};

std::string to_json(Manifest const& manifest, RunPlan const& plan, Model const& model,
                    Dataset const& dataset);

/// The facts of a run directory's last attempt; nothing where its manifest has none.
std::optional<std::map<std::string, std::string>> former_facts(
    std::filesystem::path const& run_directory);

}  // namespace stratagem
