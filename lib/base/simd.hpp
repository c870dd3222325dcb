#pragma once

/// Compiles a loop for several instruction sets; the program picks one when it starts. Such loops
/// are element-wise and never contracted to FMA, so every clone gives the same bits.
#if defined(__x86_64__) && defined(__GNUC__)
#define STRATAGEM_SIMD_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define STRATAGEM_SIMD_CLONES
#endif
