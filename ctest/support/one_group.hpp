#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/contract.hpp"
#include "comm/world.hpp"

namespace stratagem::test {

/// A world that has one group, which may be more than a communicator of a backend.
class OneGroup final : public World {
 public:
  explicit OneGroup(Communicator& all) : all_(all) {}

  Communicator& all() override { return all_; }

 private:
  std::vector<std::string> gather(std::string const& text) override { return {text}; }
  std::unique_ptr<Communicator> open(std::string const&, std::vector<int> const&) override {
    expects(false, "no further group");
    return nullptr;
  }

  Communicator& all_;
};

}  // namespace stratagem::test
