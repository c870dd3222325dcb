#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "base/error.hpp"
#include "support/scratch.hpp"

namespace stratagem::test {

/// A file whose content changes with every input: in memory, so that a disk does not slow it down.
/// Readers that insist on a name or a folder find it there as a link.
class InputFile {
 public:
  InputFile() : descriptor_(::memfd_create("input", MFD_CLOEXEC)) {
    if (descriptor_ < 0) std::abort();
  }
  ~InputFile() { ::close(descriptor_); }
  InputFile(InputFile const&) = delete;
  InputFile& operator=(InputFile const&) = delete;

  void hold(std::span<std::uint8_t const> content) const {
    auto const size = static_cast<ssize_t>(content.size());
    if (::ftruncate(descriptor_, 0) != 0 ||
        ::pwrite(descriptor_, content.data(), content.size(), 0) != size)
      std::abort();
  }
  void hold(std::string const& content) const {
    hold({reinterpret_cast<std::uint8_t const*>(content.data()), content.size()});
  }

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }
  void appear_as(std::filesystem::path const& name) const {
    std::filesystem::create_symlink(path(), name);
  }

 private:
  int descriptor_;
};

/// A reader may take its input, or refuse it with `code`; anything else ends the process. True when
/// it was taken.
template <class Read>
bool reads_or_refuses(ExitCode code, Read const& read) {
  try {
    read();
    return true;
  } catch (Error const& refusal) {
    if (refusal.code() != code) std::abort();
    return false;
  }
}

/// What must hold for every input.
inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace stratagem::test
