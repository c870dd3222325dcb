#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/agreement.hpp"
#include "comm/world.hpp"
#include "support/recording_communicator.hpp"

namespace stratagem::test {

/// A world whose groups note what happens on this rank.
class RecordingWorld final : public World {
 public:
  RecordingWorld(World& inner, Events& events)
      : inner_(inner), events_(events), all_(inner.all(), events) {}

  Communicator& all() override { return all_; }

 private:
  std::vector<std::string> gather(std::string const& text) override {
    return gather_texts(inner_.all(), text);
  }
  std::unique_ptr<Communicator> open(std::string const& name,
                                     std::vector<int> const& ranks) override {
    return std::make_unique<RecordingCommunicator>(inner_.group(name, ranks), events_);
  }

  World& inner_;
  Events& events_;
  RecordingCommunicator all_;
};

}  // namespace stratagem::test
