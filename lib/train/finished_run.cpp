#include "train/finished_run.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "comm/agreement.hpp"
#include "mpi/session.hpp"
#include "run_files/checkpoint.hpp"
#include "run_files/outcome.hpp"
#include "train/checkpoint/facts.hpp"
#include "train/manifest.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;

using Values = std::map<std::string, std::string>;

/// Keys that say how long a run is.
constexpr std::array<std::string_view, 3> lengths{"run.epochs", "run.max_steps", "run.max_time_s"};
/// Keys of a place, which is the run's wherever it is.
constexpr std::array<std::string_view, 2> places{"run.out", "data.root"};

bool among(auto const& names, std::string const& name) {
  return std::ranges::find(names, name) != names.end();
}

std::string value_of(Values const& values, std::string const& key) {
  auto const found = values.find(key);
  return found == values.end() ? "" : found->second;
}

/// A finished run and what is asked for now.
class Comparison {
 public:
  Comparison(RunRequest const& request, RunDirectory const& directory, Setup const& setup)
      : request_(request),
        setup_(setup),
        directory_(directory.path),
        outcome_(read_outcome(directory.path).value()),
        before_(request.values_in(directory.path)),
        facts_before_(former_facts(directory.path)),
        facts_(without_surroundings(training_facts(request.values, setup))) {}

  /// What forbids to take the one for the other.
  std::vector<std::string> forbidden() const {
    std::vector<std::string> found;
    if (facts_before_)
      found = compare(without_surroundings(*facts_before_), facts_, request_.resume_mode).forbidden;
    if (is_shorter()) found.push_back(shorter());
    auto const& weights = request_.config.run.save_weights;
    if (!before_.empty() && !weights.empty() && changed("run.save_weights"))
      found.push_back(str("run.save_weights is ", weights, ", and was ",
                          value_of(before_, "run.save_weights"),
                          ": stratagem export-weights writes those of a finished run"));
    return found;
  }

  bool is_longer() const {
    return !same_length() && outcome_.steps < setup_.plan.total_steps && !time_is_over();
  }

  /// What it was to leave behind and could not write, as on a full disk; empty for nothing.
  std::string lost() const {
    if (outcome_.code != ExitCode::io) return {};
    auto const last = checkpoint_folder(directory_) / checkpoint_name(outcome_.steps);
    auto const& weights = request_.config.run.save_weights;
    if (!weights.empty() && !fs::exists(weights)) return "the weights were not written";
    if (request_.config.checkpoint.at_end && !fs::exists(last))
      return "its last step was not saved";
    return {};
  }

  /// What is of no effect on what was done already; empty for nothing.
  std::string without_effect() const {
    std::vector<std::string> found;
    for (auto const& [key, value] : request_.values) {
      bool const counts = facts_.contains(key) || among(lengths, key) || among(places, key);
      if (!counts && before_.contains(key) && changed(key))
        found.push_back(str(key, " was ", before_.at(key), " and is ", value));
    }
    return join(found, "; ");
  }

 private:
  bool changed(std::string const& key) const {
    return value_of(before_, key) != value_of(request_.values, key);
  }
  bool same_length() const {
    return !before_.empty() &&
           std::ranges::none_of(lengths, [&](auto key) { return changed(std::string(key)); });
  }
  bool time_is_over() const {
    auto const limit = request_.config.run.max_time_s;
    return limit > 0 && outcome_.train_time_s >= limit;
  }
  bool is_shorter() const {
    auto const limit = request_.config.run.max_time_s;
    bool const in_time = limit > 0 && outcome_.train_time_s > limit && changed("run.max_time_s");
    return !same_length() && (outcome_.steps > setup_.plan.total_steps || in_time);
  }
  std::string shorter() const {
    return str(
        "it went on to step ", outcome_.steps, ", in ", format_whole_seconds(outcome_.train_time_s),
        ", and less is asked for: run.epochs, run.max_steps and run.max_time_s are ",
        value_of(request_.values, "run.epochs"), ", ", value_of(request_.values, "run.max_steps"),
        " and ", value_of(request_.values, "run.max_time_s"));
  }

  RunRequest const& request_;
  Setup const& setup_;
  fs::path directory_;
  Outcome outcome_;
  Values before_;  ///< empty: not known
  std::optional<Facts> facts_before_;
  Facts facts_;
};

}  // namespace

bool goes_further(RunRequest const& request, RunDirectory const& directory, Setup const& setup,
                  mpi::Comm const& world, Log& log) {
  mpi::Session::enter(world, "the comparison with a finished run");
  auto const longer = from_rank_0(world, [&]() -> std::string {
    Comparison const comparison(request, directory, setup);
    auto const& name = request.config.run.out;
    if (auto const forbidden = comparison.forbidden(); !forbidden.empty())
      refuse_to_resume("the finished run in " + name, forbidden);
    if (comparison.is_longer()) return "1";
    if (auto const lost = comparison.lost(); !lost.empty()) {
      log.info(
          str(name, " holds this run, COMPLETE, but ", lost, ": it is trained to its end again"));
      return "1";
    }
    auto const vain = comparison.without_effect();
    log.info(str(name, " holds this run, COMPLETE: nothing to do",
                 vain.empty() ? "" : "; of no effect: " + vain));
    return "0";
  });
  return longer == "1";
}

}  // namespace stratagem
