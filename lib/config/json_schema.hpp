#pragma once

#include <string>

#include "config/keys.hpp"

namespace stratagem {

/// A JSON Schema (draft 2020-12) of a configuration's file: every key with its values, default and
/// meaning; those of a strategy where the file names it. A file with `parts` is a study. For
/// editors; the program itself also checks what joins several keys.
std::string json_schema(KnownNames const& names);

}  // namespace stratagem
