#include "predict/savings.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

constexpr double least_saving = 0.01;  ///< of what a rank holds: less is an error of prediction
constexpr int most_times_ranks = 16;

/// Its price is what differs between the runs: only the order of sums, if nothing else.
Saving saving_of(std::string change, Forecast const& before, Forecast const& after,
                 Model const& model) {
  using enum Saving::Price;
  auto const &was = before.plan, &is = after.plan;
  Saving saving{.change = std::move(change), .peak_bytes = after.peak_bytes()};
  std::vector<std::string> prices;
  if (is.global_batch != was.global_batch) {
    saving.price = batch;
    prices.push_back(str("trains otherwise: ", is.global_batch, " ", is.samples_name(),
                         " per step, not ", was.global_batch));
  } else if (model.mixes_samples() && is.samples_per_pass != was.samples_per_pass) {
    saving.price = batch_norm;
    prices.push_back(str("BatchNorm sees ", is.samples_per_pass, " ", is.samples_name(), ", not ",
                         was.samples_per_pass));
  }
  if (is.config.model.recompute.every != was.config.model.recompute.every)
    prices.emplace_back("about a third more computing");
  auto const sent = is.strategy.traffic.most_bytes_sent;
  if (100 * sent > 101 * was.strategy.traffic.most_bytes_sent)
    prices.push_back("sends " + format_bytes(static_cast<double>(sent)));
  saving.price_text = prices.empty() ? "rounding only" : join(prices, ", ");
  return saving;
}

/// One change after the other is tried, until a rank holds little enough.
class Search {
 public:
  Search(Forecast const& before, Model const& model, ActivationPredictor* predictor,
         Room const& room)
      : before_(before),
        model_(model),
        predictor_(predictor),
        room_(room),
        must_fit_(!room.fits(before.peak_bytes())) {}

  /// Smaller passes, passes that keep less, and, where a rank must hold less than with either,
  /// both.
  void passes() {
    if (predictor_ == nullptr) return;
    auto config = before_.plan.config;
    auto const [smaller, found] = smallest_passes(config);
    add(smaller, found);
    if (config.model.recompute.every == 1) return;
    config.model.recompute = {.every = 1};
    auto const recomputed = try_run(config, before_.plan.ranks);
    add(recompute_all, recomputed);
    if (!must_fit_ || enough(found) || enough(recomputed)) return;
    auto const [both, smallest] = smallest_passes(config);
    add(str(both, ", ", recompute_all), smallest);
  }

  void ranks() {
    auto const servers = before_.plan.strategy.placement.servers();
    auto const workers = before_.plan.ranks - servers;
    std::optional<Forecast> found;
    int const most = must_fit_ ? most_times_ranks : 2;
    for (int times = 2; times <= most && !enough(found); times *= 2)
      if (auto next = try_run(before_.plan.config, workers * times + servers))
        found = std::move(next);
    if (!found) return;
    auto const change = str("--ranks ", found->plan.ranks - servers);
    add(servers == 0 ? change : str(change, " (of the run ", found->plan.ranks, ")"), found);
  }

  void batch() {
    if (predictor_ == nullptr) return;
    auto config = before_.plan.config;
    bool const of_worker = config.data.batch_per_worker > 0;
    auto& samples = of_worker ? config.data.batch_per_worker : config.data.global_batch;
    auto kept = samples;
    std::optional<Forecast> found;
    while (samples % 2 == 0 && !enough(found)) {
      samples /= 2;
      auto next = try_run(config, before_.plan.ranks);
      if (!next) break;
      found = std::move(next);
      kept = samples;
      if (!must_fit_) break;
    }
    add(str(of_worker ? "batch_per_worker: " : "global_batch: ", kept), found);
  }

  /// Those that change the training least, first.
  std::vector<Saving> found() && {
    std::ranges::stable_sort(found_, {}, &Saving::price);
    return std::move(found_);
  }

 private:
  static constexpr char const* recompute_all = "model.recompute: all";

  bool enough(std::optional<Forecast> const& one) const {
    if (!one) return false;
    if (must_fit_) return room_.fits(one->peak_bytes());
    return 2 * one->peak_bytes() <= before_.peak_bytes();
  }

  /// Nothing where the run cannot be.
  std::optional<Forecast> try_run(RunConfig const& config, int ranks) const {
    try {
      Forecast changed{make_run_plan(config, model_, before_.plan.images, ranks)};
      if (predictor_ != nullptr) predict_activations(changed, model_, *predictor_);
      return changed;
    } catch (Error const&) {
      return std::nullopt;
    }
  }

  std::pair<std::string, std::optional<Forecast>> smallest_passes(RunConfig config) const {
    auto const usual = micro_batches_of(config.strategy);
    auto const samples = before_.plan.samples_per_pass;
    std::pair<std::string, std::optional<Forecast>> found;
    for (std::int64_t times = 2; times <= samples && !enough(found.second); ++times) {
      if (samples % times != 0) continue;
      auto const count = static_cast<int>(usual * times);
      config.strategy = with_micro_batches(config.strategy, count);
      if (auto next = try_run(config, before_.plan.ranks))
        found = {str("micro_batches: ", count), std::move(next)};
    }
    return found;
  }

  void add(std::string const& change, std::optional<Forecast> const& after) {
    auto const before = static_cast<double>(before_.peak_bytes());
    if (!after || static_cast<double>(after->peak_bytes()) > (1 - least_saving) * before) return;
    found_.push_back(saving_of(change, before_, *after, model_));
  }

  Forecast const& before_;
  Model const& model_;
  ActivationPredictor* predictor_;
  Room const& room_;
  bool must_fit_;
  std::vector<Saving> found_;
};

}  // namespace

std::vector<Saving> savings_of(Forecast const& forecast, Model const& model,
                               ActivationPredictor* predictor, Room const& room) {
  Search search(forecast, model, predictor, room);
  search.passes();
  search.ranks();
  search.batch();
  return std::move(search).found();
}

}  // namespace stratagem
