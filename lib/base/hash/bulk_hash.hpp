#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace stratagem {

/// A 64-bit hash of many bytes, as fast as they can be read: eight independent lanes, so that the
/// multiplications of neighbouring words overlap. Every step of a lane is a bijection, so no single
/// word can change unnoticed. Not cryptographic.
std::uint64_t bulk_hash(std::span<std::byte const> bytes);

}  // namespace stratagem
