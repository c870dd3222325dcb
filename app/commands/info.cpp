#include <iostream>
#include <optional>

#include <ATen/Context.h>
#include <ATen/Version.h>
#include <nlohmann/json.hpp>

#include "app/options.hpp"
#include "base/build_info.hpp"
#include "base/system.hpp"
#include "base/text.hpp"
#include "crypto/primitives.hpp"
#include "gpu/device.hpp"
#include "h5/error.hpp"
#include "mpi/launcher.hpp"
#include "mpi/mpirun.hpp"
#include "mpi/session.hpp"
#include "plan/gpus_of_job.hpp"

namespace stratagem::app {
namespace {

struct Fact {
  std::string name;
  std::string value;
};

struct Information {
  std::vector<Fact> facts;
  std::vector<std::string> warnings;
};

std::string cuda_version(int number) {
  return number == 0 ? "none" : str(number / 1000, ".", number % 1000 / 10);
}

/// `session` is there when a launcher started this process.
Information gather(mpi::Session const* session, std::optional<mpi::Mpirun> const& mpirun) {
  auto const& build = build_info();
  auto const environment = mpi::process_environment();
  auto const gpus = gpu::availability();
  auto const cores = usable_cores();
  Information information;
  information.facts = {
      {"stratagem", str(build.version, " (", build.git_sha, build.git_dirty ? ", changed" : "",
                        ", ", build.flavour, ", ", build.build_type, ")")},
      {"compiler", std::string(build.compiler)},
      {"LibTorch", str(build.libtorch, "; CPU kernels: ", at::get_cpu_capability())},
      {"MPI", mpi::library_version()},
      {"MPI threads",
       session != nullptr ? mpi::to_string(session->provided()) : "known under a launcher"},
      {"HDF5", h5::library_version()},
      {"OpenSSL", crypto::available() ? std::string(crypto::library())
                                      : "none: strategy.secure: pairwise is refused"},
      {"launcher", mpi::launcher_name(environment)},
      {"mpirun", mpirun ? str(mpirun->name(), " (", mpirun->path, ")") : "not on PATH"},
      {"ranks", session != nullptr ? std::to_string(session->world().size()) : "1"},
      {"host", host_name()},
      {"processor", processor_name()},
      {"usable cores", std::to_string(cores.size())},
      {"CUDA runtime", cuda_version(gpus.runtime_version)},
      {"CUDA driver", cuda_version(gpus.driver_version)},
      {"GPUs", gpus.count > 0 ? std::to_string(gpus.count) : "none: " + gpus.reason},
  };
  for (int i = 0; i < gpus.count; ++i)
    information.facts.push_back({str("GPU ", i), gpu::device_name({gpu::DeviceKind::cuda, i})});
  if (gpus.driver_version > 0 && gpus.driver_version / 1000 < gpus.runtime_version / 1000)
    information.warnings.push_back(str("the driver runs CUDA ", cuda_version(gpus.driver_version),
                                       ", this program needs ", cuda_version(gpus.runtime_version),
                                       ": use a newer driver or a LibTorch for that CUDA version"));
  if (auto const problem = unused_gpus(environment))
    information.warnings.emplace_back(problem->what());
  if (session != nullptr && cores.size() == 1)
    information.warnings.emplace_back(
        "this rank is bound to one core: start with `mpirun --bind-to none`");
  if (auto const problem = mpirun ? mpi::mismatch(*mpirun, mpi::library_version()) : "";
      !problem.empty())
    information.warnings.push_back(problem);
  if (auto const problem = mpi::singleton_problem(1, environment))
    information.warnings.emplace_back(problem->what());
  return information;
}

std::string to_json(Information const& information) {
  auto document = nlohmann::json::object();
  for (auto const& fact : information.facts) document[fact.name] = fact.value;
  document["warnings"] = information.warnings;
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string to_text(Information const& information) {
  std::string text;
  for (auto const& fact : information.facts) {
    auto name = fact.name;
    name.resize(14, ' ');
    text += name + fact.value + "\n";
  }
  for (auto const& warning : information.warnings) text += "warning: " + warning + "\n";
  return text;
}

}  // namespace

void declare_info(Options& options) {
  options.add({.name = "json", .meaning = "as JSON"});
  options.add_example("stratagem info", "what this machine has");
  options.add_example("mpirun --bind-to none -n 2 stratagem info --json",
                      "the same under a launcher, for programs");
}

ExitCode execute_info(Options const& options) {
  auto const mpirun = mpi::mpirun_on_path();
  std::optional<mpi::Session> session;
  if (mpi::launched(mpi::process_environment())) session.emplace(mpi::ThreadLevel::serialized);
  if (session && session->world().rank() != 0) return ExitCode::done;
  auto const information = gather(session ? &*session : nullptr, mpirun);
  std::cout << (options.flag("json") ? to_json(information) : to_text(information));
  return ExitCode::done;
}

}  // namespace stratagem::app
