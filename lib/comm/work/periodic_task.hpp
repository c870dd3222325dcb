#pragma once

namespace stratagem {

/// A small task that a progress thread does periodically, whether or not operations are in flight.
class PeriodicTask {
 public:
  virtual ~PeriodicTask() = default;
  virtual void beat() = 0;
  /// Called repeatedly at the end; true once nothing is in flight any more.
  virtual bool finish() = 0;
};

}  // namespace stratagem
