#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace stratagem {

/// A 64-bit hash of many bytes, as fast as they can be read. Eight lanes are independent, so that
/// the multiplications of neighbouring words overlap. Every step of a lane is a bijection, so a
/// change of a single word always changes the hash. Not cryptographic.
std::uint64_t bulk_hash(std::span<std::byte const> bytes);

}  // namespace stratagem
