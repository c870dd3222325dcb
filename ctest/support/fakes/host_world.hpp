#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/agreement.hpp"
#include "comm/world.hpp"
#include "support/fakes/host_communicator.hpp"

namespace stratagem::test {

/// A world whose groups are those of `inner`, with host memory in place of the device's.
class HostWorld final : public World {
 public:
  explicit HostWorld(World& inner) : inner_(inner), all_(inner.all()) {}

  Communicator& all() override { return all_; }

 private:
  std::vector<std::string> gather(std::string const& text) override {
    return gather_texts(all_, text);
  }
  std::unique_ptr<Communicator> open(std::string const& name,
                                     std::vector<int> const& ranks) override {
    return std::make_unique<HostCommunicator>(inner_.group(name, ranks));
  }

  World& inner_;
  HostCommunicator all_;
};

}  // namespace stratagem::test
