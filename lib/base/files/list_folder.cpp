#include "base/files/list_folder.hpp"

#include "base/error.hpp"

namespace stratagem {

namespace fs = std::filesystem;

std::vector<fs::directory_entry> list_folder(fs::path const& folder) {
  std::error_code failed;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed))
    if (!it->path().filename().native().starts_with('.')) entries.push_back(*it);
  if (failed) throw Error(ExitCode::bad_data, "cannot list " + folder.string(), failed.message());
  return entries;
}

}  // namespace stratagem
