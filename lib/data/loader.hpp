#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "data/batch_source.hpp"
#include "data/clients.hpp"
#include "trace/recorder.hpp"

namespace stratagem {

/// Which batches one rank needs, if they are known from the start: its slice of the global batches
/// of steps [first_step, end_step). Step s belongs to epoch s / steps_per_epoch(images,
/// global_batch).
struct LoadPlan {
  std::uint64_t seed = 0;
  std::int64_t global_batch = 1;  ///< not larger than the training set
  RankSlice slice;
  std::int64_t first_step = 0;
  std::int64_t end_step = 0;
  Augmentation augment = Augmentation::none;
  /// Who trains on which samples in a step, where these belong to clients; else nothing.
  std::shared_ptr<ClientRounds const> clients = {};
};

/// Prepares the training batches of one rank, in order, on a separate thread and ahead of their
/// use. This work is recorded as spans `prepare_batch` of lane `loader` while a sampled step runs.
class Loader final : public BatchSource {
 public:
  /// `recorder` may be null; it must outlive the loader.
  Loader(Dataset const& dataset, InputFormat const& format, LoadPlan const& plan,
         trace::Recorder* recorder);

  void ask(Share const& share) override;
  /// The next batch on the device; waits for it. Throws the error of the loader's thread, if there
  /// is one.
  std::optional<Batch> next(std::int64_t end_step) override;
  std::optional<Batch> next() { return next(std::numeric_limits<std::int64_t>::max()); }

 private:
  void run(std::stop_token const& stop);
  bool wanted() const { return next_step_ < plan_.end_step || !asked_.empty(); }
  Share take_wanted();
  Batch prepare(Share const& share);
  /// In the order of the epoch, `step` counted from its start.
  std::span<std::int64_t const> samples_of(std::int64_t epoch, std::int64_t step,
                                           IndexRange const& slots);
  void record(std::int64_t step, std::int64_t begin) const;

  static constexpr std::size_t batches_ahead = 2;

  SampleSet set_;
  Runs runs_;
  BatchMaker maker_;
  LoadPlan plan_;
  Augmenter augmenter_;
  trace::Recorder* recorder_;
  trace::NameId span_name_ = 0;

  std::int64_t ordered_epoch_ = -1;  ///< the epoch of order_; the thread's own
  std::vector<std::int64_t> order_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::int64_t next_step_;      ///< of the plan, to be prepared; under mutex_
  std::int64_t next_out_;       ///< of the plan, to be handed out; under mutex_
  std::deque<Share> asked_;     ///< under mutex_
  std::int64_t missing_;        ///< batches that were requested and not handed out; under mutex_
  std::deque<Batch> ready_;     ///< under mutex_
  std::exception_ptr failure_;  ///< under mutex_
  std::jthread thread_;         ///< last, so that it stops before the other members are destroyed
};

}  // namespace stratagem
