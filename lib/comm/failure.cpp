#include "comm/failure.hpp"

#include <filesystem>
#include <new>

#include <c10/util/Exception.h>

namespace stratagem {

Error as_error(std::exception const& failure) {
  if (auto const* known = dynamic_cast<Error const*>(&failure)) return *known;
  if (auto const* full = dynamic_cast<c10::OutOfMemoryError const*>(&failure))
    return {ExitCode::out_of_memory, full->what_without_backtrace()};
  if (dynamic_cast<std::bad_alloc const*>(&failure) != nullptr)
    return {ExitCode::out_of_memory,
            "the host has no memory left",
            {},
            "make the batch smaller or take more ranks"};
  if (auto const* torch = dynamic_cast<c10::Error const*>(&failure))
    return {ExitCode::unexpected, torch->what_without_backtrace()};
  if (auto const* file = dynamic_cast<std::filesystem::filesystem_error const*>(&failure))
    return {ExitCode::io, "cannot use " + file->path1().string(), file->code().message()};
  return {ExitCode::unexpected, failure.what()};
}

}  // namespace stratagem
