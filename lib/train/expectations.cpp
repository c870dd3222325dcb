#include "train/expectations.hpp"

#include <vector>

#include "base/build_info.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem {

std::map<std::string, std::string> facts(Dataset const& dataset, gpu::Device const& device,
                                         int ranks) {
  auto const& build = build_info();
  return {{"version", std::string(build.version)},
          {"git_sha", std::string(build.git_sha)},
          {"libtorch", std::string(build.libtorch)},
          {"device", device.kind == gpu::DeviceKind::cpu ? "cpu" : gpu::device_name(device)},
          {"ranks", std::to_string(ranks)},
          {"dataset_fingerprint", dataset.fingerprint}};
}

void check_expectations(std::map<std::string, std::string> const& expect,
                        std::map<std::string, std::string> const& facts) {
  std::vector<std::string> broken;
  for (auto const& [name, wanted] : expect)
    if (facts.at(name) != wanted)
      broken.push_back(str("expect.", name, " is ", wanted, ", but here it is ", facts.at(name)));
  if (!broken.empty())
    throw Error(ExitCode::environment, join(broken, "; "), "the run was meant for another set-up",
                "change the set-up, or the expectation");
}

}  // namespace stratagem
