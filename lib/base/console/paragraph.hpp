#pragma once

#include <string>

namespace stratagem {

/// `text` folded at spaces to lines of up to 79 characters, where words allow; ends with a newline.
std::string paragraph(std::string const& text);

}  // namespace stratagem
