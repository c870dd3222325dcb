#include "study/conclusion.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "base/text.hpp"

namespace stratagem {
namespace {

using Runs = std::vector<ComparedRun>;

std::string percent(double share) {
  return format_number(100 * share, share < 0.1 ? 1 : 0) + " %";
}

std::string mebibytes(std::int64_t bytes) {
  return format_number(static_cast<double>(bytes) / (1 << 20), 1) + " MiB";
}

/// What is compared, and its speeds in the rounds.
struct Contender {
  std::string name;
  std::vector<double> log_speeds = {};

  double mean() const {
    return std::accumulate(log_speeds.begin(), log_speeds.end(), 0.0) /
           static_cast<double>(log_speeds.size());
  }
};

/// Those whose speed is known in all rounds, in the order of the runs.
std::vector<Contender> contenders_of(Runs const& runs) {
  std::vector<Contender> found;
  for (auto const& run : runs) {
    auto place = std::ranges::find(found, run.of, &Contender::name);
    if (place == found.end()) place = found.insert(found.end(), {.name = run.of});
    place->log_speeds.push_back(std::log(run.summary.images_per_s));
  }
  std::size_t rounds = 0;
  for (auto const& contender : found) rounds = std::max(rounds, contender.log_speeds.size());
  std::erase_if(found, [&](Contender const& contender) {
    return contender.log_speeds.size() < rounds || !std::isfinite(contender.mean());
  });
  return found;
}

/// The greatest difference between two runs of the same, after what all runs of a round have in
/// common; a logarithm of a ratio.
double chance_of(std::vector<Contender> const& contenders) {
  auto const rounds = contenders.front().log_speeds.size();
  std::vector<double> common(rounds);
  for (auto const& contender : contenders)
    for (std::size_t i = 0; i < rounds; ++i)
      common[i] += contender.log_speeds[i] / static_cast<double>(contenders.size());
  double greatest = 0;
  for (auto const& contender : contenders) {
    std::vector<double> own(rounds);
    for (std::size_t i = 0; i < rounds; ++i) own[i] = contender.log_speeds[i] - common[i];
    auto const [least, most] = std::ranges::minmax(own);
    greatest = std::max(greatest, most - least);
  }
  return greatest;
}

/// How many times the difference between runs of the same two means must differ by. Of comparisons
/// of five equal ones, at most 5 % then have a difference (simulated: equal and unequal normal
/// noise, Student's t with 3 degrees of freedom).
double caution(std::size_t rounds) {
  return rounds == 2 ? 3.2 : rounds == 3 ? 1.5 : 1;
}

/// The least difference of means that is more than chance; a logarithm of a ratio.
double least_told_apart(std::vector<Contender> const& contenders) {
  auto const rounds = contenders.front().log_speeds.size();
  return rounds < 2 ? std::numeric_limits<double>::infinity()
                    : caution(rounds) * chance_of(contenders);
}

std::string about_speed(std::vector<Contender> const& contenders, double told_apart,
                        std::string const& labels) {
  auto const fastest = *std::ranges::max_element(contenders, {}, &Contender::mean);
  std::vector<std::string> level, slower;
  for (auto const& contender : contenders) {
    auto const behind = fastest.mean() - contender.mean();
    if (contender.name == fastest.name) continue;
    auto const told = str(contender.name, " ", percent(1 - std::exp(-behind)));
    (behind > told_apart ? slower : level).push_back(told);
  }
  auto text = str("fastest", level.empty() ? "" : ", or not told apart", ": ", fastest.name,
                  " with ", format_number(std::exp(fastest.mean()), 0), " ", labels, "/s");
  if (!level.empty()) text += ", " + join(level, ", ") + " less";
  return slower.empty() ? text : text + "; slower: " + join(slower, ", ");
}

std::string about_chance(std::vector<Contender> const& contenders, double told_apart) {
  auto const rounds = contenders.front().log_speeds.size();
  if (rounds < 2) return "each ran once: no difference in speed is told from chance; repeat them";
  return str("in ", rounds, " rounds, runs of the same differed by up to ",
             percent(std::expm1(chance_of(contenders))), "; means that differ by less than ",
             percent(1 - std::exp(-told_apart)), " may do so by chance");
}

std::string about_cores(Runs const& runs) {
  constexpr double enough = 0.9;
  auto const& least = *std::ranges::min_element(runs, {}, [](ComparedRun const& run) {
    return std::isnan(run.core_share) ? 1.0 : run.core_share;
  });
  if (!(least.core_share < enough)) return {};
  return str("something else used the cores for ", percent(1 - least.core_share),
             " of the time of ", least.summary.name,
             "; these times are not those of this machine alone, repeat them when it is idle");
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
  for (auto const& run : runs) {
    auto& names = by_digest[run.digest];
    if (!run.digest.empty() && std::ranges::count(names, run.of) == 0) names.push_back(run.of);
  }
  std::vector<std::string> alike;
  for (auto const& [digest, names] : by_digest)
    if (names.size() > 1) alike.push_back(join(names, ", "));
  return alike.empty() ? ""
                       : str("the same parameters in the end, bit for bit: ", join(alike, "; "));
}

}  // namespace

std::vector<std::string> conclusions(Runs const& runs) {
  Runs once;  // whatever chance does not change
  for (auto const& run : runs)
    if (std::ranges::count(once, run.of, &ComparedRun::of) == 0) once.push_back(run);
  if (once.size() < 2) return {};
  std::vector<std::string> lines;
  if (auto const contenders = contenders_of(runs); contenders.size() > 1) {
    auto const told_apart = least_told_apart(contenders);
    lines = {about_speed(contenders, told_apart, once.front().summary.labels),
             about_chance(contenders, told_apart)};
  }
  for (auto const& line :
       {about_cores(runs), about_memory(once), about_shards(once), about_bits(runs)})
    lines.push_back(line);
  std::erase(lines, std::string());
  return lines;
}

}  // namespace stratagem
