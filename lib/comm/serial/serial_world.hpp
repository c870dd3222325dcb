#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/serial/serial_communicator.hpp"
#include "comm/world.hpp"

namespace stratagem {

/// A run of one rank.
class SerialWorld final : public World {
 public:
  explicit SerialWorld(gpu::Device const& device) : device_(device), all_(device) {}

  Communicator& all() override { return all_; }

 private:
  std::vector<std::string> gather(std::string const& text) override { return {text}; }
  std::unique_ptr<Communicator> open(std::string const&, std::vector<int> const&) override {
    return std::make_unique<SerialCommunicator>(device_);
  }

  gpu::Device device_;
  SerialCommunicator all_;
};

}  // namespace stratagem
