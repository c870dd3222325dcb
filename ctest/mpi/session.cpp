#include "mpi/session.hpp"

#include <gtest/gtest.h>

#include "mpi/error.hpp"
#include "support/world.hpp"

namespace stratagem::mpi {
namespace {

TEST(Session, LibraryNamesItself) {
  auto const version = library_version();
  EXPECT_NE(version.find_first_of("0123456789"), std::string::npos) << version;
  EXPECT_EQ(version.find(','), std::string::npos) << version;
}

TEST(Session, FailedCallsKeepTheLibrarysCodeAndReason) {
  std::byte byte{};
  try {
    test::world().send({&byte, 1}, test::world().size(), 0).wait();
    FAIL() << "a message to a rank that does not exist was accepted";
  } catch (MpiError const& error) {
    EXPECT_EQ(error.code(), ExitCode::peer_lost);
    EXPECT_NE(error.mpi_code(), 0);
    EXPECT_NE(std::string(error.what()).find("MPI_ERR_RANK"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace stratagem::mpi
