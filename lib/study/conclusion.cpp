#include "study/conclusion.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.hpp"

namespace stratagem {
namespace {

using Runs = std::vector<ComparedRun>;

std::string percent(double share) {
  return format_number(100 * share, 0) + " %";
}

std::string mebibytes(std::int64_t bytes) {
  return format_number(static_cast<double>(bytes) / (1 << 20), 1) + " MiB";
}

/// "ddp 4 % slower, fsdp 9 %".
std::string others_behind(Runs const& runs, ComparedRun const& fastest) {
  std::vector<std::string> parts;
  for (auto const& run : runs) {
    if (&run == &fastest || !(run.summary.images_per_s > 0)) continue;
    auto const behind = 1 - run.summary.images_per_s / fastest.summary.images_per_s;
    parts.push_back(str(run.summary.name, " ", percent(behind), parts.empty() ? " slower" : ""));
  }
  return join(parts, ", ");
}

std::string about_speed(Runs const& runs) {
  auto const speed = [](ComparedRun const& run) {
    return std::isfinite(run.summary.images_per_s) ? run.summary.images_per_s : 0.0;
  };
  auto const& fastest = *std::ranges::max_element(runs, {}, speed);
  if (speed(fastest) <= 0) return {};
  return str("fastest: ", fastest.summary.name, " with ",
             format_number(fastest.summary.images_per_s, 0), " ", fastest.summary.labels, "/s; ",
             others_behind(runs, fastest));
}

std::string about_chance(Runs const& runs) {
  auto const most = std::ranges::max(runs, {}, &ComparedRun::epochs_differ).epochs_differ;
  constexpr char once[] = "each ran once: repeat them before a small difference is believed";
  if (!(most > 0)) return once;
  return str("epochs of one run differed by up to ", percent(most),
             ": smaller differences between runs may be chance; ", once);
}

ComparedRun const* find(Runs const& runs, std::string const& strategy) {
  auto const is_it = [&](ComparedRun const& run) {
    return run.summary.strategy == strategy && run.summary.ranks > 1;
  };
  auto const found = std::ranges::find_if(runs, is_it);
  return found == runs.end() ? nullptr : &*found;
}

std::string about_memory(Runs const& runs) {
  auto const total = [](ComparedRun const& run) { return run.summary.peak.total(); };
  auto const& least = *std::ranges::min_element(runs, {}, total);
  auto const& most = *std::ranges::max_element(runs, {}, total);
  if (total(least) <= 0) return {};
  return str("least memory: ", least.summary.name, " with ", mebibytes(total(least)),
             " at the peak of a rank; most: ", most.summary.name, " with ", mebibytes(total(most)));
}

/// FSDP against DDP: it divides the state, but needs slots to gather the unit that computes.
std::string about_shards(Runs const& runs) {
  auto const* ddp = find(runs, "ddp");
  auto const* fsdp = find(runs, "fsdp");
  if (ddp == nullptr || fsdp == nullptr) return {};
  using gpu::MemoryCategory;
  auto const gathered = [](ComparedRun const& run) {
    auto const& peak = run.summary.peak;
    return peak[MemoryCategory::parameters] + peak[MemoryCategory::gradients];
  };
  auto const optimizer = [](ComparedRun const& run) {
    return run.summary.peak[MemoryCategory::optimizer];
  };
  auto const saved = ddp->summary.peak.total() - fsdp->summary.peak.total();
  auto const against =
      str(mebibytes(std::abs(saved)), saved > 0 ? " less" : " more", " than ", ddp->summary.name);
  if (saved > 0) return str(fsdp->summary.name, " holds ", against);
  return str(fsdp->summary.name, " holds ", against, ": it shares out the optimizer's state (",
             mebibytes(optimizer(*fsdp)), " for ", mebibytes(optimizer(*ddp)),
             "), but slots for its largest unit take more (parameters and gradients ",
             mebibytes(gathered(*fsdp)), " for ", mebibytes(gathered(*ddp)), "): this ",
             fsdp->summary.model, " is too small for it, larger models are not");
}

std::string about_bits(Runs const& runs) {
  std::map<std::string, std::vector<std::string>> by_digest;
  for (auto const& run : runs)
    if (!run.digest.empty()) by_digest[run.digest].push_back(run.summary.name);
  std::vector<std::string> alike;
  for (auto const& [digest, names] : by_digest)
    if (names.size() > 1) alike.push_back(join(names, ", "));
  return alike.empty() ? ""
                       : str("the same parameters in the end, bit for bit: ", join(alike, "; "));
}

}  // namespace

double difference_of_epochs(trace::RunTraces const& traces) {
  auto speeds = traces.ranks.front().table(trace::epochs_table()).reals("images_per_s");
  std::erase_if(speeds, [](double speed) { return !(speed > 0); });
  if (speeds.size() < 2) return 0;
  auto const [least, greatest] = std::ranges::minmax(speeds);
  return 1 - least / greatest;
}

std::vector<std::string> conclusions(std::vector<ComparedRun> const& runs) {
  if (runs.size() < 2) return {};
  std::vector<std::string> lines{about_speed(runs), about_chance(runs), about_memory(runs),
                                 about_shards(runs), about_bits(runs)};
  std::erase(lines, std::string());
  return lines;
}

}  // namespace stratagem
