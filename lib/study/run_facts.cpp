#include "study/run_facts.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"

namespace stratagem {

RunFacts read_run_facts(std::filesystem::path const& run) {
  RunFacts facts;
  try {
    auto const manifest = nlohmann::json::parse(read_text(run / "manifest.json", ExitCode::io));
    facts.train_images = manifest.at("dataset").at("train_images").get<std::int64_t>();
    facts.global_batch = manifest.at("plan").at("global_batch").get<std::int64_t>();
    auto const& build = manifest.at("build");
    facts.commit =
        build.at("git_sha").get<std::string>() + (build.at("git_dirty").get<bool>() ? "+" : "");
  } catch (std::exception const&) {
    return facts;
  }
  return facts;
}

}  // namespace stratagem
