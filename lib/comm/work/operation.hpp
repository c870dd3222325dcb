#pragma once

#include <cstdint>
#include <string_view>

namespace stratagem {

/// One operation of a communicator, driven by its progress thread.
class Operation {
 public:
  enum class State { stuck, moved, finished };

  virtual ~Operation() = default;
  virtual std::string_view name() const = 0;
  /// Continues as far as possible without waiting. Only the progress thread calls it.
  virtual State advance() = 0;
  /// Collectives of a group start in the order of submission, a few at a time; other operations
  /// start at once.
  virtual bool collective() const = 0;
  /// Bytes that may be moving although advance() returns stuck: if a library moves one part of a
  /// long message per call, only its end is reported.
  virtual std::int64_t in_flight() const { return 0; }
};

}  // namespace stratagem
