#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "comm/communicator.hpp"
#include "comm/failure.hpp"
#include "mpi/comm.hpp"

namespace stratagem {

// An error on one rank ends all ranks, with one exit code and one text. All functions except
// joint_error are collective.

/// One text per rank, in rank order, on every rank.
std::vector<std::string> gather_texts(Communicator& comm, std::string const& text);

/// The error that all ranks report if some have failed; one entry per rank. Code and text are those
/// of the lowest failing rank, after "ranks 1, 3: ..." unless all failed.
std::optional<Error> joint_error(std::span<std::optional<Error> const> by_rank);

/// Throws the joint error, an AgreedError, on every rank if at least one rank has an error.
void agree(Communicator& comm, std::optional<Error> const& own);
void agree(mpi::Comm const& comm, std::optional<Error> const& own);

/// Throws AgreedError(code, ..., cure) on every rank, with the ranks that differ from rank 0,
/// unless `value` (a text or a fingerprint of `what`) is the same on all ranks.
void require_equal(Communicator& comm, std::string_view what, std::string const& value,
                   ExitCode code, std::string const& cure);
void require_equal(mpi::Comm const& comm, std::string_view what, std::string const& value,
                   ExitCode code, std::string const& cure);

/// What `make` returns; when it fails on some rank, all ranks throw the joint AgreedError.
/// Collective.
template <class Make>
auto on_all_ranks(mpi::Comm const& world, Make make) {
  std::optional<std::invoke_result_t<Make>> made;
  std::optional<Error> own;
  try {
    made.emplace(make());
  } catch (std::exception const& failure) {
    own = as_error(failure);
  }
  agree(world, own);
  return std::move(*made);
}

/// What rank 0 makes, on every rank; when it fails there, all ranks throw its error. Collective.
template <class Make>
std::string from_rank_0(mpi::Comm const& world, Make make) {
  std::string text;  // "0 result", or "code message"
  if (world.rank() == 0) {
    try {
      text = "0 " + make();
    } catch (std::exception const& failure) {
      auto const error = as_error(failure);
      text = std::to_string(to_int(error.code())) + " " + error.what();
    }
  }
  world.broadcast(text, 0);
  auto const space = text.find(' ');
  auto const code = static_cast<ExitCode>(std::stoi(text.substr(0, space)));
  text.erase(0, space + 1);
  if (code != ExitCode::done) throw AgreedError(code, text);
  return text;
}

}  // namespace stratagem
