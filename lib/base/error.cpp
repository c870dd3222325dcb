#include "base/error.hpp"

namespace stratagem {
namespace {

std::string compose(std::string message, std::string const& why, std::string const& cure) {
  if (!why.empty()) message += " (" + why + ")";
  if (!cure.empty()) message += "; " + cure;
  return message;
}

}  // namespace

Error::Error(ExitCode code, std::string what, std::string why, std::string cure)
    : std::runtime_error(compose(std::move(what), why, cure)), code_(code) {}

}  // namespace stratagem
