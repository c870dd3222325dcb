#include "comm/node/shared_segment.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arithmetic.hpp"
#include "base/contract.hpp"
#include "base/error.hpp"
#include "base/system.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

Error refused(std::string_view call) {
  return {ExitCode::environment, "no memory can be shared between processes",
          str(call, ": ", std::strerror(errno))};
}

/// A descriptor that is closed unless it is taken.
class Descriptor {
 public:
  Descriptor(int number, std::string_view call) : number_(number) {
    if (number_ < 0) throw refused(call);
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(Descriptor const&) = delete;
  Descriptor& operator=(Descriptor const&) = delete;
  int get() const { return number_; }
  int take() { return std::exchange(number_, -1); }

 private:
  int number_;
};

std::uint64_t random_token() {
  std::uint64_t token = 0;
  if (::getrandom(&token, sizeof token, 0) != sizeof token) throw refused("getrandom");
  return token;
}

}  // namespace

std::size_t SharedSegment::page() {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

std::size_t SharedSegment::to_pages(std::size_t bytes) {
  return static_cast<std::size_t>(
      round_up(static_cast<std::int64_t>(bytes), static_cast<std::int64_t>(page())));
}

SharedSegment::SharedSegment(int descriptor, std::size_t bytes)
    : descriptor_(descriptor), size_(bytes) {
  auto* const mapped = ::mmap(nullptr, size_ + page(), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  if (mapped == MAP_FAILED) {
    auto const failure = refused("mmap");
    ::close(descriptor_);
    throw failure;
  }
  data_ = static_cast<std::byte*>(mapped);
  ::madvise(mapped, size_, MADV_HUGEPAGE);  // where the system allows it
}

SharedSegment SharedSegment::create(std::size_t bytes) {
  Descriptor made(::memfd_create("stratagem", MFD_CLOEXEC), "memfd_create");
  auto const size = to_pages(bytes);
  if (::ftruncate(made.get(), static_cast<off_t>(size + page())) != 0) throw refused("ftruncate");
  SharedSegment segment(made.take(), size);
  segment.token_ = random_token();
  if (!segment.hold(size, page())) throw refused("posix_fallocate");
  std::memcpy(segment.data_ + size, &segment.token_, sizeof segment.token_);
  return segment;
}

SharedSegment SharedSegment::open(std::string_view address) {
  auto const parts = split(address, ' ');
  ensures(parts.size() == 2, "an address is a path and a token");
  Descriptor opened(::open(std::string(parts[0]).c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK), "open");
  struct stat about {};
  if (::fstat(opened.get(), &about) != 0) throw refused("fstat");
  auto const size = static_cast<std::size_t>(about.st_size);
  if (size <= page()) throw refused("fstat");
  SharedSegment segment(opened.take(), size - page());
  std::memcpy(&segment.token_, segment.data_ + segment.size_, sizeof segment.token_);
  if (std::to_string(segment.token_) != parts[1]) {
    errno = ENOENT;
    throw refused("open");
  }
  return segment;
}

SharedSegment::SharedSegment(SharedSegment&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      data_(std::exchange(other.data_, nullptr)),
      token_(other.token_) {}

SharedSegment::~SharedSegment() {
  if (data_ != nullptr) ::munmap(data_, size_ + page());
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string SharedSegment::address() const {
  return str("/proc/", ::getpid(), "/fd/", descriptor_, " ", token_);
}

bool SharedSegment::hold(std::size_t offset, std::size_t bytes) {
  // The system would not refuse, but end processes.
  auto const left = available_bytes();
  if (left > 0 && static_cast<std::int64_t>(bytes) > left) return false;
  auto const begin = static_cast<off_t>(offset), length = static_cast<off_t>(bytes);
  int code = 0;
  do {
    code = ::posix_fallocate(descriptor_, begin, length);
  } while (code == EINTR);
  errno = code;
  return code == 0;
}

void SharedSegment::release(std::size_t offset, std::size_t bytes) {
  auto const begin = static_cast<off_t>(offset), length = static_cast<off_t>(bytes);
  static_cast<void>(
      ::fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin, length));
}

}  // namespace stratagem
