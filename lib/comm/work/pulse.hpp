#pragma once

namespace stratagem {

/// Something small that a progress thread does now and then, whether or not operations are under
/// way.
class Pulse {
 public:
  virtual ~Pulse() = default;
  virtual void beat() = 0;
  /// At the end, again and again; true once nothing is under way any more.
  virtual bool finish() = 0;
};

}  // namespace stratagem
