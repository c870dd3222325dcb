#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stratagem {

/// Memory that processes of one machine map. It has no name in a file system: the system frees it
/// with the last process that has it, however that ends. Pages take memory once they are held.
class SharedSegment {
 public:
  /// A new one of `bytes` bytes, of which no page is held. Error(environment) if the system
  /// refuses.
  static SharedSegment create(std::size_t bytes);
  /// That of another process, or of this one; `address` is its address(). Error(environment) if it
  /// cannot be opened: it is gone, of another machine, or hidden in a container.
  static SharedSegment open(std::string_view address);
  ~SharedSegment();
  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&&) = delete;

  /// For open() in other processes, as long as this process has the segment.
  std::string address() const;
  std::span<std::byte> bytes() const { return {data_, size_}; }

  /// Makes the pages of a range memory that is surely there; they are zero if they were not held.
  /// False if the system has none left. Ranges begin and end on pages.
  bool hold(std::size_t offset, std::size_t bytes);
  /// Gives them back; their content is lost, for all processes.
  void release(std::size_t offset, std::size_t bytes);

  static std::size_t page();  ///< [B]
  /// The bytes of the fewest pages that hold so many.
  static std::size_t to_pages(std::size_t bytes);

 private:
  SharedSegment(int descriptor, std::size_t bytes);

  int descriptor_;
  std::size_t size_;
  std::byte* data_ = nullptr;
  std::uint64_t token_ = 0;  ///< in its last bytes, tells it from what else has its address
};

}  // namespace stratagem
