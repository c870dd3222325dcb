#include "run_files/folder_permissions.hpp"

#include <cerrno>
#include <optional>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;

using Status = struct stat;

/// Of the name itself, not of what it may point to.
std::optional<Status> status_of(fs::path const& path) {
  Status status{};
  if (::lstat(path.c_str(), &status) != 0) return std::nullopt;
  return status;
}

[[noreturn]] void refuse(fs::path const& folder, std::string const& why, std::string const& cure) {
  throw Error(ExitCode::environment, "run directory " + folder.string() + " is not safe", why,
              cure);
}

/// "a/b/" is what "a/b" is, also where b is a link.
fs::path without_slash(fs::path const& path) {
  return path.has_filename() ? path : path.parent_path();
}

}  // namespace

void require_own_folder(fs::path const& folder) {
  auto const path = without_slash(folder);
  if (auto const self = status_of(path)) {
    if (S_ISLNK(self->st_mode))
      refuse(path, "it is a link; its owner could point it elsewhere",
             "name the folder itself with --out");
    if (self->st_uid != ::geteuid())
      refuse(path, str("it belongs to user ", self->st_uid, ", not to you (", ::geteuid(), ")"),
             "name one of your own with --out");
    if (S_ISDIR(self->st_mode) && (self->st_mode & S_IWOTH) != 0)
      refuse(path, "everybody may write into it", "chmod o-w, or name another with --out");
  }
  auto parent = fs::absolute(path).parent_path();
  std::error_code missing;
  while (!fs::exists(parent, missing) && parent.has_relative_path()) parent = parent.parent_path();
  auto const holder = status_of(fs::canonical(parent, missing));
  if (holder && (holder->st_mode & S_IWOTH) != 0 && (holder->st_mode & S_ISVTX) == 0)
    refuse(path, "everybody may replace it: " + parent.string() + " is for all to write",
           "chmod +t that folder, or name another place with --out");
}

void make_own_folder(fs::path const& folder) {
  auto const path = without_slash(folder);
  std::error_code failed;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), failed);
  if (!failed && ::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    failed = {errno, std::generic_category()};
  if (failed)
    throw Error(ExitCode::io, "cannot create " + path.string(), failed.message(),
                "name a writable folder with --out");
}

}  // namespace stratagem
