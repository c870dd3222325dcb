#pragma once

/// Compiles a loop for several instruction sets and picks at start. The loops that use it are
/// element-wise and never contracted to FMA, so that every clone gives the same bits.
#if defined(__x86_64__) && defined(__GNUC__)
#define STRATAGEM_SIMD_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define STRATAGEM_SIMD_CLONES
#endif
