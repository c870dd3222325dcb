#include "gpu/telemetry.hpp"

namespace stratagem::gpu {

std::unique_ptr<Telemetry> make_telemetry(Device const&) {
  return make_host_telemetry();
}

}  // namespace stratagem::gpu
