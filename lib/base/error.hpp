#pragma once

#include <stdexcept>
#include <string>

#include "base/exit_code.hpp"

namespace stratagem {

/// A failure that a user can act on: what went wrong (and where), why, and how to fix it.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, std::string what, std::string why = {}, std::string cure = {});

  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

/// An error that every rank throws at the same point, so that each can end cleanly and none has to
/// be killed.
class AgreedError : public Error {
 public:
  using Error::Error;
  explicit AgreedError(Error const& error) : Error(error) {}
};

}  // namespace stratagem
