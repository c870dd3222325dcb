#include "app/commands/submit_line.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "app/homes.hpp"
#include "base/console/shell_words.hpp"
#include "base/error.hpp"
#include "base/files/file.hpp"
#include "base/text.hpp"

namespace stratagem::app {
namespace {

namespace fs = std::filesystem;

/// Where slurm/ is: under STRATAGEM_HOME if that is set, or here, or where the program comes from.
fs::path home() {
  auto candidates = homes();
  if (std::getenv("STRATAGEM_HOME") == nullptr) candidates.insert(candidates.begin(), ".");
  for (auto const& home : candidates)
    if (std::error_code ignored; fs::is_directory(home / "slurm" / "sites", ignored)) return home;
  throw Error(ExitCode::environment, "--site: no slurm/sites under " + candidates.front().string(),
              {}, "set STRATAGEM_HOME to the folder that holds slurm/, or start there");
}

std::vector<std::string> sites_in(fs::path const& folder) {
  std::vector<std::string> sites;
  for (auto const& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".env") sites.push_back(entry.path().stem().string());
  std::ranges::sort(sites);
  return sites;
}

}  // namespace

std::string submit_line(std::string const& site, Forecast const& forecast,
                        std::string const& config) {
  auto const& plan = forecast.plan;
  auto const slurm = home() / "slurm";
  auto const known = sites_in(slurm / "sites");
  if (std::ranges::find(known, site) == known.end())
    throw Error(ExitCode::usage, "--site " + site + " is unknown" + did_you_mean(site, known), {},
                "take one of " + join(known, ", "));
  auto const facts = read_text(slurm / "sites" / (site + ".env"), ExitCode::io);
  if (("\n" + facts).find("\nsite_scheduler=none") != std::string::npos)
    throw Error(ExitCode::usage, "--site " + site, "it has no scheduler",
                str("start `mpirun --bind-to none -n ", plan.ranks, " stratagem run ",
                    shell_words(std::array{config}), "`"));
  auto const& placement = plan.strategy.placement;
  std::vector<std::string> words{(slurm / "submit.sh").lexically_normal().string(), "--site", site,
                                 "--workers", str(placement.workers())};
  auto const add = [&](auto const&... more) { (words.push_back(str(more)), ...); };
  if (placement.servers() > 0) add("--servers", placement.servers());
  if (auto const& time = forecast.time) add("--time", time->request(), "--lead", time->lead_s());
  add("run", config);
  return shell_words(words);
}

}  // namespace stratagem::app
