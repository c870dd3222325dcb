#include "app/command.hpp"
#include "base/build_info.hpp"
#include "base/text.hpp"
#include "comm/agreement.hpp"
#include "comm/failure.hpp"
#include "mpi/launcher.hpp"
#include "mpi/session.hpp"

namespace stratagem::app {
namespace {

/// What must be the same on all ranks before anything else is done.
void check_same_program(mpi::Comm const& world, std::vector<std::string> const& arguments) {
  auto const& info = build_info();
  require_equal(world, "the executable",
                str(info.version, " ", info.git_sha, info.git_dirty ? "+" : "", " ", info.flavour,
                    " ", info.build_type),
                ExitCode::environment, "start the same program on all nodes");
  require_equal(world, "the command line", join(arguments, " "), ExitCode::usage,
                "give all ranks the same arguments");
}

}  // namespace

ExitCode with_mpi(CommonOptions const& common, std::vector<std::string> const& arguments,
                  std::function<ExitCode(mpi::Comm const& world, Log& log)> const& body) {
  // A singleton's MPI_Init leaves variables as if a launcher had started it.
  auto const problem_alone = mpi::singleton_problem(1, mpi::process_environment());
  mpi::Session const session(mpi::ThreadLevel::serialized);
  auto const world = session.world();
  Log log(world.rank(), world.rank() == 0, common.level, common.color);
  try {
    if (problem_alone && world.size() == 1) throw AgreedError(*problem_alone);
    check_same_program(world, arguments);
    return body(world, log);
  } catch (AgreedError const& error) {
    if (world.rank() == 0) log.error(error.what());
    return error.code();
  } catch (std::exception const& failure) {
    auto const error = as_error(failure);
    log.error(error.what());
    if (world.size() > 1) session.abort(error.code());
    return error.code();
  }
}

}  // namespace stratagem::app
