#include "model/exported/file/export_types.hpp"

namespace stratagem {

std::optional<at::ScalarType> exported_type(std::int64_t number) {
  switch (number) {
    case 1:
      return at::kByte;
    case 2:
      return at::kChar;
    case 3:
      return at::kShort;
    case 4:
      return at::kInt;
    case 5:
      return at::kLong;
    case 6:
      return at::kHalf;
    case 7:
      return at::kFloat;
    case 8:
      return at::kDouble;
    case 10:
      return at::kComplexFloat;
    case 11:
      return at::kComplexDouble;
    case 12:
      return at::kBool;
    case 13:
      return at::kBFloat16;
    default:
      return std::nullopt;
  }
}

std::optional<at::MemoryFormat> exported_memory_format(std::int64_t number) {
  switch (number) {
    case 1:
      return at::MemoryFormat::Contiguous;
    case 2:
      return at::MemoryFormat::ChannelsLast;
    case 4:
      return at::MemoryFormat::Preserve;
    default:
      return std::nullopt;
  }
}

}  // namespace stratagem
