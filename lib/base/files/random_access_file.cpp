#include "base/files/random_access_file.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem {

RandomAccessFile::RandomAccessFile(std::filesystem::path path)
    : path_(std::move(path)),
      descriptor_(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (descriptor_ < 0)
    throw Error(ExitCode::bad_data, "cannot open " + path_.string(), std::strerror(errno),
                errno == EMFILE ? "raise the limit of open files (ulimit -n), or pack the images "
                                  "into fewer files"
                                : "");
  struct stat status {};
  bool const known = ::fstat(descriptor_, &status) == 0;
  if (known && S_ISREG(status.st_mode)) {
    size_ = status.st_size;
    return;
  }
  ::close(std::exchange(descriptor_, -1));
  throw Error(ExitCode::bad_data, "cannot read " + path_.string(), "it is not a regular file");
}

RandomAccessFile::RandomAccessFile(RandomAccessFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

RandomAccessFile::~RandomAccessFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void RandomAccessFile::read(std::int64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    auto const got = ::pread(descriptor_, into.data(), into.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      throw Error(ExitCode::bad_data, "cannot read " + path_.string(), std::strerror(errno));
    if (got == 0)
      throw Error(ExitCode::bad_data,
                  str(path_.string(), ": the file ends at byte ", offset, ", before what is read"),
                  str("it had ", size_, " bytes when it was opened"),
                  "do not change the data while a run uses them");
    into = into.subspan(static_cast<std::size_t>(got));
    offset += got;
  }
}

}  // namespace stratagem
