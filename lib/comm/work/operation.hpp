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
  /// Goes as far as it can without waiting. Only the progress thread calls it.
  virtual State advance() = 0;
  /// Collectives start in the order they were submitted, a few at a time; others at once.
  virtual bool collective() const = 0;
  /// What may be moving although advance() says stuck [B]: a library that moves a long message a
  /// part at each call tells only of its end.
  virtual std::int64_t in_flight() const { return 0; }
};

}  // namespace stratagem
