#include "h5/error.hpp"

#include <cstdlib>
#include <string_view>

#include <hdf5.h>

#include "base/text.hpp"

namespace stratagem::h5 {
namespace {

/// The innermost entry of HDF5's error stack, which contains the cause.
std::string reason() {
  std::string text;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned depth, H5E_error2_t const* entry, void* out) -> herr_t {
        if (depth == 0 && entry->desc != nullptr) *static_cast<std::string*>(out) = entry->desc;
        return 0;
      },
      &text);
  H5Eclear2(H5E_DEFAULT);
  // For a failed system call, it lists name, errno, descriptor and buffer; a person needs only the
  // reason.
  static constexpr std::string_view mark = "error message = '";
  if (auto const at = text.find(mark); at != std::string::npos) text.erase(0, at + mark.size());
  return text.substr(0, text.find_first_of("\n'"));
}

}  // namespace

Hdf5Error::Hdf5Error(std::string const& action)
    : Error(ExitCode::io, action + " failed", reason()) {}

void check(std::int64_t result, std::string const& action) {
  if (result < 0) throw Hdf5Error(action);
}

Handle owned(std::int64_t id, std::string const& action) {
  check(id, action);
  return Handle(id);
}

void initialise_library() {
  ::setenv("HDF5_USE_FILE_LOCKING", "BEST_EFFORT", 0);
  H5dont_atexit();
  H5open();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

std::string library_version() {
  unsigned major = 0, minor = 0, patch = 0;
  H5get_libversion(&major, &minor, &patch);
  return str(major, ".", minor, ".", patch);
}

}  // namespace stratagem::h5
