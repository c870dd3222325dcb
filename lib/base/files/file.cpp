#include "base/files/file.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

[[noreturn]] void fail(char const* action, std::filesystem::path const& path, ExitCode code) {
  throw Error(code, str("cannot ", action, " ", path.string()), std::strerror(errno));
}

/// An open file that closes itself; close() reports errors that ~Descriptor cannot report.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor const&) = delete;
  Descriptor& operator=(Descriptor const&) = delete;
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    auto const written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

template <class Container>
Container read_whole(std::filesystem::path const& path, ExitCode code, std::uintmax_t most) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file.valid()) fail("open", path, code);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail("inspect", path, code);
  if (!S_ISREG(status.st_mode))
    throw Error(code, str("cannot read ", path.string()), "it is not a regular file");
  if (static_cast<std::uintmax_t>(status.st_size) > most)
    throw Error(code, str("cannot read ", path.string()),
                str("it has ", format_bytes(static_cast<double>(status.st_size)), ", more than ",
                    format_bytes(static_cast<double>(most))));
  Container content(static_cast<std::size_t>(status.st_size), typename Container::value_type{});
  std::size_t filled = 0;
  while (filled < content.size()) {
    auto const got = ::read(file.get(), content.data() + filled, content.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", path, code);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  content.resize(filled);
  return content;
}

}  // namespace

std::vector<std::byte> read_bytes(std::filesystem::path const& path, ExitCode code,
                                  std::uintmax_t most) {
  return read_whole<std::vector<std::byte>>(path, code, most);
}

std::string read_text(std::filesystem::path const& path, ExitCode code, std::uintmax_t most) {
  return read_whole<std::string>(path, code, most);
}

void require_regular_or_none(std::filesystem::path const& path) {
  using Type = std::filesystem::file_type;
  std::error_code unknown;
  auto const type = std::filesystem::symlink_status(path, unknown).type();
  bool const harmless = type == Type::regular || type == Type::symlink;
  if (harmless || type == Type::not_found || type == Type::none) return;
  auto const* const what = type == Type::directory ? "a folder"
                           : type == Type::fifo    ? "a pipe"
                                                   : "a device";
  throw Error(ExitCode::io, str("cannot write ", path.string()),
              str("it is ", what, ", which a file would replace"), "name a file");
}

void replace_file(std::filesystem::path const& path, std::string_view content) {
  require_regular_or_none(path);
  auto const temporary = path.string() + ".tmp." + std::to_string(::getpid());
  ::unlink(temporary.c_str());  // left by a killed process that had the same id
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file.valid()) fail("create", temporary, ExitCode::io);
  bool const whole = write_all(file.get(), content) && ::fsync(file.get()) == 0;
  int const reason = errno;
  bool const closed = file.close();
  if (!whole || !closed || ::rename(temporary.c_str(), path.c_str()) != 0) {
    if (!whole) errno = reason;
    int const kept = errno;
    ::unlink(temporary.c_str());
    errno = kept;
    fail("write", path, ExitCode::io);
  }
}

AppendFile::AppendFile(std::filesystem::path const& path)
    : path_(path),
      descriptor_(
          ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0) fail("create", path, ExitCode::io);
}

AppendFile::~AppendFile() {
  ::close(descriptor_);
}

void AppendFile::write(std::string_view text) {
  if (!write_all(descriptor_, text)) fail("write", path_, ExitCode::io);
}

}  // namespace stratagem
