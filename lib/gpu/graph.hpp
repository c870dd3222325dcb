#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "gpu/device.hpp"

namespace stratagem::gpu {

/// Work of the compute stream that was submitted once and runs again as a whole, for the price of
/// one launch (CUDA graphs).
class Graph {
 public:
  /// False on a CPU.
  static bool possible(Device const& device);

  /// Keeps what `body` submits to the compute stream and to streams that it forks and joins; none
  /// of it runs. What body allocates and frees stays reserved for the graph, which reuses it in
  /// every run. Body may not wait for the device. Throws what body throws;
  /// Error(environment) if the work cannot be kept.
  Graph(Device const& device, std::function<void()> const& body);
  ~Graph();
  Graph(Graph const&) = delete;
  Graph& operator=(Graph const&) = delete;

  /// Runs it in the order of the compute stream. Marks of body (see Marks::handle) are made as
  /// `marks` instead, one for each of `kept`.
  void launch(std::span<void* const> kept, std::span<void* const> marks) const;

  std::int64_t nodes() const;           ///< kernels, copies and marks
  std::int64_t reserved_bytes() const;  ///< memory that it took from the device

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stratagem::gpu
