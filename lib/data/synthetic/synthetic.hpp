#pragma once

#include "data/dataset.hpp"

namespace stratagem {

// Procedural data: no files, and the same pixels on every machine, because they are computed with
// integers only. Labels are 0, 1, ... 9, 0, 1, ..., so every part of a set is balanced.

/// 1x28x28: digits on a dark, noisy background, shifted, stretched, slanted, and crossed by a
/// scratch.
Dataset make_synthetic_digits();

/// 3x32x32: ten figures, mostly brighter than their background, both in random colours with noise;
/// shifted, scaled and rotated.
Dataset make_synthetic_shapes();

/// Text of 16 symbols, each of which depends on the two before it: one of four successors, with
/// probabilities 0.5, 0.25, 0.15 and 0.1. Its entropy is 1.2080 nats per token. `length`: of a
/// sequence [tokens].
Dataset make_synthetic_text(std::int64_t length);

inline constexpr std::int64_t synthetic_text_symbols = 16;
inline constexpr std::int64_t synthetic_train_tokens = 1'200'000;
inline constexpr std::int64_t synthetic_test_tokens = 100'000;
inline constexpr std::int64_t synthetic_train_images = 8000;
inline constexpr std::int64_t synthetic_test_images = 2000;

}  // namespace stratagem
