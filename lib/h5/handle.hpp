#pragma once

#include <cstdint>
#include <utility>

namespace stratagem::h5 {

/// Owns one HDF5 identifier of any kind. close() reports failure; the destructor cannot.
class Handle {
 public:
  Handle() = default;
  explicit Handle(std::int64_t id) : id_(id) {}
  ~Handle() { close(); }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, none)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }

  std::int64_t get() const { return id_; }
  bool valid() const { return id_ >= 0; }
  /// False if HDF5 could not close it, for instance because the disk is full.
  bool close();

 private:
  static constexpr std::int64_t none = -1;
  std::int64_t id_ = none;  ///< hid_t, which is 64 bits since HDF5 1.10
};

}  // namespace stratagem::h5
