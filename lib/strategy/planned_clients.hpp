#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "data/clients.hpp"

namespace stratagem {

/// What a strategy has decided whose samples belong to clients. Immutable, the same on all ranks.
class PlannedClients {
 public:
  virtual ~PlannedClients() = default;

  virtual ClientConfig config() const = 0;

  // Once it is known whose samples are whose.
  /// Error(usage) where the strategy cannot train with them.
  virtual void check(ClientSplit const& split) const = 0;
  /// For people, each table with a line's end; and the same for programs, as entries of `document`.
  virtual std::string tables(ClientSplit const& split) const = 0;
  virtual void add_to(nlohmann::json& document, ClientSplit const& split) const = 0;
};

}  // namespace stratagem
