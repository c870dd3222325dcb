#include "mpi/launcher.hpp"

#include <map>
#include <ostream>

#include <gtest/gtest.h>

namespace stratagem::mpi {
namespace {

struct Case {
  char const* name;
  std::map<std::string, std::string> variables;
  int world_size;
  char const* launcher;
  bool launched;
  bool problem;
  bool one_node = false;
};

void PrintTo(Case const& c, std::ostream* out) {
  *out << c.name;
}

class Launcher : public testing::TestWithParam<Case> {};

TEST_P(Launcher, IsRecognised) {
  auto const& c = GetParam();
  Environment const environment = [&](char const* name) -> std::optional<std::string> {
    auto const found = c.variables.find(name);
    if (found == c.variables.end()) return std::nullopt;
    return found->second;
  };
  EXPECT_EQ(launcher_name(environment), c.launcher);
  EXPECT_EQ(launched(environment), c.launched);
  EXPECT_EQ(on_one_node(environment), c.one_node);
  auto const problem = singleton_problem(c.world_size, environment);
  ASSERT_EQ(problem.has_value(), c.problem);
  if (problem) {
    EXPECT_EQ(problem->code(), ExitCode::environment);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, Launcher,
    testing::Values(
        Case{"bare", {}, 1, "none", false, false},
        Case{"mpirun_of_open_mpi_4",
             {{"OMPI_COMM_WORLD_SIZE", "2"},
              {"PMIX_RANK", "1"},
              {"OMPI_MCA_orte_ess_num_procs", "2"}},
             2,
             "mpirun (Open MPI, ORTE)",
             true,
             false},
        Case{"mpirun_of_open_mpi_5",
             {{"OMPI_COMM_WORLD_SIZE", "2"},
              {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
              {"PMIX_RANK", "1"},
              {"OMPI_VERSION", "5.0.7"},
              {"PRTE_LAUNCHED", "1"}},
             2,
             "mpirun (Open MPI 5.0.7, PRRTE)",
             true,
             false,
             true},
        Case{"mpirun_on_two_nodes",
             {{"OMPI_COMM_WORLD_SIZE", "4"},
              {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
              {"SLURM_STEP_NUM_NODES", "1"}},
             4,
             "mpirun",
             true,
             false,
             false},
        Case{"srun_on_one_node",
             {{"PMIX_RANK", "1"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_NODES", "1"}},
             2,
             "srun (Slurm, PMIx)",
             true,
             false,
             true},
        Case{"prterun_inside_of_slurm",
             {{"PMIX_RANK", "1"}, {"PRTE_LAUNCHED", "1"}, {"SLURM_STEP_ID", "0"}},
             2,
             "prterun (PRRTE)",
             true,
             false},
        Case{"mpirun_of_4",
             {{"OMPI_COMM_WORLD_SIZE", "4"}, {"PMIX_RANK", "0"}},
             4,
             "mpirun",
             true,
             false},
        Case{"mpirun_of_1_in_an_allocation_of_4",
             {{"OMPI_COMM_WORLD_SIZE", "1"}, {"SLURM_NTASKS", "4"}},
             1,
             "mpirun",
             true,
             false},
        Case{"srun_pmix",
             {{"PMIX_RANK", "1"}, {"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "2"}},
             2,
             "srun (Slurm, PMIx)",
             true,
             false},
        Case{"srun_pmix_of_1_task",
             {{"PMIX_RANK", "0"}, {"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "1"}},
             1,
             "srun (Slurm, PMIx)",
             true,
             false},
        Case{"srun_without_pmix_4_tasks",
             {{"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "4"}},
             1,
             "none",
             false,
             true},
        Case{"bare_in_a_batch_script_of_1_task", {{"SLURM_NTASKS", "1"}}, 1, "none", false, false},
        Case{"bare_in_a_batch_script_of_4_tasks", {{"SLURM_NTASKS", "4"}}, 1, "none", false, true},
        Case{"launcher_of_another_library",
             {{"PMI_SIZE", "2"}, {"PMI_RANK", "0"}},
             1,
             "none",
             false,
             true},
        Case{"unreadable_count_is_no_evidence",
             {{"SLURM_NTASKS", "many"}},
             1,
             "none",
             false,
             false}),
    [](auto const& info) { return info.param.name; });

}  // namespace
}  // namespace stratagem::mpi
