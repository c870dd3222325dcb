#include "app/calibrations.hpp"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "app/homes.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem::app {
namespace {

namespace fs = std::filesystem;

/// Where the references are. Empty when there are none.
fs::path reference_folder() {
  for (auto const& home : homes())
    if (std::error_code ignored; fs::is_directory(home / "inputs" / "calibrations", ignored))
      return home / "inputs" / "calibrations";
  return {};
}

/// Sorted.
std::vector<std::string> references() {
  std::vector<std::string> names;
  auto const folder = reference_folder();
  if (folder.empty()) return names;
  for (auto const& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

Calibration read_reference(std::string const& name) {
  return read_calibration(reference_folder() / (name + ".json"));
}

}  // namespace

Calibration find_calibration(std::string const& file_or_name) {
  fs::path const path(file_or_name);
  std::error_code ignored;
  if (fs::exists(path, ignored) || path.has_parent_path() || path.has_extension())
    return read_calibration(path);
  auto const known = references();
  if (std::ranges::find(known, file_or_name) != known.end()) return read_reference(file_or_name);
  throw Error(ExitCode::usage,
              "--calibration " + file_or_name + " is unknown" + did_you_mean(file_or_name, known),
              "it is no file, and no reference has this name",
              known.empty() ? "make a file with `stratagem calibrate`"
                            : str("take one of ", join(known, ", "),
                                  ", or make a file with `stratagem calibrate`"));
}

Table reference_calibrations() {
  Table table({{"calibration", Align::left},
               {"of", Align::left},
               {"device", Align::left},
               {"from published figures, not measured", Align::left}});
  for (auto const& name : references()) {
    auto const calibration = read_reference(name);
    table.add_row({name, calibration.host, calibration.device, calibration.published});
  }
  return table;
}

}  // namespace stratagem::app
