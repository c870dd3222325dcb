#include "app/homes.hpp"

#include <cstdlib>

#include "study/launcher.hpp"

namespace stratagem::app {

std::vector<std::filesystem::path> homes() {
  auto const tree = own_program().parent_path().parent_path();
  std::vector<std::filesystem::path> homes{tree / "share" / "stratagem", tree};
  if (auto const* given = std::getenv("STRATAGEM_HOME")) homes.insert(homes.begin(), given);
  return homes;
}

}  // namespace stratagem::app
