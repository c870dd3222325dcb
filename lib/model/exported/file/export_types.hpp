#pragma once

#include <cstdint>
#include <optional>

#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

namespace stratagem {

// torch.export numbers types in its own way (torch/_export/serde/schema.py).

/// Empty for those that are not known here.
std::optional<at::ScalarType> exported_type(std::int64_t number);
std::optional<at::MemoryFormat> exported_memory_format(std::int64_t number);

inline constexpr std::int64_t exported_strided = 7;  ///< the only layout that is known here

}  // namespace stratagem
