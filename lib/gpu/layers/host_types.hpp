#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "gpu/element.hpp"

namespace stratagem::gpu {

/// use(0), where 0 is of the host's type of `element`.
template <class Use>
void with_type(Element element, Use const& use) {
  switch (element) {
    case Element::fp32:
      return use(float{});
    case Element::bf16:
      return use(c10::BFloat16{});
    case Element::fp16:
      return use(c10::Half{});
  }
}

}  // namespace stratagem::gpu
