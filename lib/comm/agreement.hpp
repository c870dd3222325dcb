#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "comm/communicator.hpp"
#include "mpi/comm.hpp"

namespace stratagem {

// What one rank finds wrong ends all ranks, with one exit code and one text. All functions but
// list_ranks and joint_error are collective.

/// "rank 1" or "ranks 0, 2".
std::string list_ranks(std::span<int const> ranks);

/// One text per rank, in rank order, on every rank.
std::vector<std::string> gather_texts(Communicator& comm, std::string const& text);

/// The error that all ranks report when some have failed, one entry per rank: code and text of the
/// lowest failing rank, "ranks 1, 3: ..." before it unless all of them failed.
std::optional<Error> joint_error(std::span<std::optional<Error> const> by_rank);

/// Throws the joint error, an AgreedError, on every rank when any rank comes with one of its own.
void agree(Communicator& comm, std::optional<Error> const& own);
void agree(mpi::Comm const& comm, std::optional<Error> const& own);

/// Throws AgreedError(code, ..., cure) on every rank, naming those that differ from rank 0, unless
/// `value` (a text or a fingerprint of `what`) is the same everywhere.
void require_equal(Communicator& comm, std::string_view what, std::string const& value,
                   ExitCode code, std::string const& cure);
void require_equal(mpi::Comm const& comm, std::string_view what, std::string const& value,
                   ExitCode code, std::string const& cure);

}  // namespace stratagem
