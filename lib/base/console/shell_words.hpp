#pragma once

#include <span>
#include <string>

namespace stratagem {

/// A command line that a shell takes apart into these words again.
std::string shell_words(std::span<std::string const> words);

}  // namespace stratagem
