#include "gpu/cuda/nvml.hpp"

#include <dlfcn.h>

namespace stratagem::gpu {
namespace {

// The part of NVML's C interface that is used here, with its documented layouts.
using NvmlDevice = struct NvmlDeviceOpaque*;
struct NvmlUtilization {
  unsigned gpu, memory;  // percent
};
struct NvmlMemory {
  unsigned long long total, free, used;  // bytes
};
constexpr int nvml_success = 0;
constexpr int nvml_clock_sm = 1;

struct Library {
  std::shared_ptr<void> handle;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*by_pci_bus_id)(char const*, NvmlDevice*) = nullptr;
  int (*utilization)(NvmlDevice, NvmlUtilization*) = nullptr;
  int (*memory)(NvmlDevice, NvmlMemory*) = nullptr;
  int (*power)(NvmlDevice, unsigned*) = nullptr;
  int (*energy)(NvmlDevice, unsigned long long*) = nullptr;
  int (*clock)(NvmlDevice, int, unsigned*) = nullptr;

  template <class Function>
  bool load(Function& function, char const* name) {
    function = reinterpret_cast<Function>(::dlsym(handle.get(), name));
    return function != nullptr;
  }
};

std::unique_ptr<Library> open_library() {
  void* handle = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  auto library = std::make_unique<Library>();
  library->handle = {handle, [](void* h) { ::dlclose(h); }};
  bool const whole = library->load(library->init, "nvmlInit_v2") &&
                     library->load(library->shutdown, "nvmlShutdown") &&
                     library->load(library->by_pci_bus_id, "nvmlDeviceGetHandleByPciBusId_v2") &&
                     library->load(library->utilization, "nvmlDeviceGetUtilizationRates") &&
                     library->load(library->memory, "nvmlDeviceGetMemoryInfo") &&
                     library->load(library->power, "nvmlDeviceGetPowerUsage") &&
                     library->load(library->energy, "nvmlDeviceGetTotalEnergyConsumption") &&
                     library->load(library->clock, "nvmlDeviceGetClockInfo");
  if (!whole || library->init() != nvml_success) return nullptr;
  return library;
}

class NvmlTelemetry final : public Telemetry {
 public:
  NvmlTelemetry(std::unique_ptr<Library> library, NvmlDevice device)
      : library_(std::move(library)), device_(device) {}
  ~NvmlTelemetry() override { library_->shutdown(); }

  DeviceSample sample() override {
    DeviceSample sample;
    NvmlUtilization utilization{};
    if (library_->utilization(device_, &utilization) == nvml_success)
      sample.utilization = utilization.gpu / 100.0;
    NvmlMemory memory{};
    if (library_->memory(device_, &memory) == nvml_success)
      sample.memory_used = static_cast<double>(memory.used);
    unsigned milliwatts = 0;
    if (library_->power(device_, &milliwatts) == nvml_success) sample.power = milliwatts / 1000.0;
    unsigned long long millijoules = 0;
    if (library_->energy(device_, &millijoules) == nvml_success)
      sample.energy = static_cast<double>(millijoules);
    unsigned megahertz = 0;
    if (library_->clock(device_, nvml_clock_sm, &megahertz) == nvml_success)
      sample.clock = megahertz;
    return sample;
  }

 private:
  std::unique_ptr<Library> library_;
  NvmlDevice device_;
};

}  // namespace

std::unique_ptr<Telemetry> make_nvml_telemetry(std::string const& pci_bus_id) {
  auto library = open_library();
  if (!library) return nullptr;
  NvmlDevice device = nullptr;
  if (library->by_pci_bus_id(pci_bus_id.c_str(), &device) != nvml_success) {
    library->shutdown();
    return nullptr;
  }
  return std::make_unique<NvmlTelemetry>(std::move(library), device);
}

}  // namespace stratagem::gpu
