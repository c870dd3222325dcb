#pragma once

namespace stratagem::gpu {

/// The floating types that kernels know.
enum class Element { fp32, bf16, fp16 };

}  // namespace stratagem::gpu
