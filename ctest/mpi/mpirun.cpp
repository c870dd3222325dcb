#include "mpi/mpirun.hpp"

#include <string>

#include <gtest/gtest.h>

namespace stratagem::mpi {
namespace {

struct Case {
  char const* told;     // by `mpirun --version`
  char const* is;       // its name
  char const* belongs;  // to this library
  char const* not_to;   // but not to this one
};

TEST(Mpirun, IsKnownByItsVersion) {
  for (auto const& c : {Case{"mpirun (Open MPI) 4.1.4\n\nReport bugs to ...\n",
                             "Open MPI 4.1.4, ORTE", "Open MPI v4.1.6", "Open MPI v5.0.7"},
                        Case{"mpirun (Open MPI) 5.0.7\n\nReport bugs to ...\n",
                             "Open MPI 5.0.7, PRRTE", "Open MPI v5.0.7", "Open MPI v4.1.4"},
                        Case{"mpirun (Open MPI) 10.1rc2\n", "Open MPI 10.1, PRRTE",
                             "Open MPI v10.1rc2", "Open MPI v1.10.7"},
                        Case{"HYDRA build details:\n    Version:     4.0.2\n    CC: gcc -O2\n",
                             "MPICH 4.0.2, Hydra", "MPICH Version: 4.0.2", "Open MPI v4.1.4"},
                        Case{"Launcher of the vendor\n", "Launcher of the vendor",
                             "Launcher of the vendor", "Open MPI v4.1.4"}}) {
    auto const mpirun = Mpirun::parse("/opt/bin/mpirun", c.told);
    EXPECT_EQ(mpirun.name(), c.is);
    EXPECT_EQ(mismatch(mpirun, c.belongs), "") << c.is;
    auto const problem = mismatch(mpirun, c.not_to);
    for (auto const* part : {"/opt/bin/mpirun", c.is, c.not_to})
      EXPECT_NE(problem.find(part), std::string::npos) << problem;
  }
}

TEST(Mpirun, OnThisMachineIsOfTheLibraryThatThisIsLinkedWith) {
  auto const mpirun = mpirun_on_path();
  ASSERT_TRUE(mpirun.has_value());
  EXPECT_TRUE(mpirun->path.ends_with("/mpirun")) << mpirun->path;
  EXPECT_EQ(mpirun->library, "Open MPI");
  EXPECT_FALSE(mpirun->version.empty());
}

}  // namespace
}  // namespace stratagem::mpi
