#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/agreement.hpp"
#include "comm/world.hpp"

namespace stratagem::test {

/// A world whose groups are those of `inner`, each wrapped.
class WrappedWorld final : public World {
 public:
  using Wrap = std::function<std::unique_ptr<Communicator>(Communicator&)>;

  WrappedWorld(World& inner, Wrap wrap)
      : inner_(inner), wrap_(std::move(wrap)), all_(wrap_(inner.all())) {}

  Communicator& all() override { return *all_; }

 private:
  std::vector<std::string> gather(std::string const& text) override {
    return gather_texts(*all_, text);
  }
  std::unique_ptr<Communicator> open(std::string const& name,
                                     std::vector<int> const& ranks) override {
    return wrap_(inner_.group(name, ranks));
  }

  World& inner_;
  Wrap wrap_;
  std::unique_ptr<Communicator> all_;
};

}  // namespace stratagem::test
