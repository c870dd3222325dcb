#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace stratagem::crypto {

/// Zeroes that the compiler does not leave out.
void wipe(std::span<std::uint8_t> bytes);

/// 32 bytes that nobody else may know: moved, not copied unawares, and wiped when done with.
class Secret {
 public:
  static constexpr std::size_t size = 32;

  Secret() = default;
  ~Secret() { wipe(bytes_); }
  Secret(Secret&& other) noexcept : bytes_(other.bytes_) { wipe(other.bytes_); }
  Secret& operator=(Secret&& other) noexcept {
    if (this != &other) {
      bytes_ = other.bytes_;
      wipe(other.bytes_);
    }
    return *this;
  }

  Secret copy() const {
    Secret same;
    same.bytes_ = bytes_;
    return same;
  }
  std::span<std::uint8_t, size> bytes() { return bytes_; }
  std::span<std::uint8_t const, size> bytes() const { return bytes_; }

 private:
  std::array<std::uint8_t, size> bytes_{};
};

/// From the operating system. Error(environment) where it has none.
void fill_random(std::span<std::uint8_t> bytes);
Secret random_secret();

}  // namespace stratagem::crypto
