#include "base/clock.hpp"
#include "base/system.hpp"
#include "gpu/telemetry.hpp"

namespace stratagem::gpu {
namespace {

class HostTelemetry final : public Telemetry {
 public:
  DeviceSample sample() override {
    auto const now = monotonic_ns();
    auto const used = process_cpu_seconds();
    DeviceSample sample;
    sample.utilization = (used - last_used_) / (1e-9 * static_cast<double>(now - last_ns_));
    sample.memory_used = static_cast<double>(resident_bytes());
    last_ns_ = now;
    last_used_ = used;
    return sample;
  }

 private:
  std::int64_t last_ns_ = monotonic_ns();
  double last_used_ = process_cpu_seconds();
};

}  // namespace

std::unique_ptr<Telemetry> make_host_telemetry() {
  return std::make_unique<HostTelemetry>();
}

}  // namespace stratagem::gpu
