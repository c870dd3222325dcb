#include "strategy/ddp/ddp_step.hpp"

#include <utility>

namespace stratagem {
namespace {

/// All-reduces of whole buckets.
class PlainSums {
 public:
  PlainSums(DdpPlan const& plan, StepParts const& parts, Lanes& lanes)
      : plan_(plan), parts_(parts), lanes_(lanes) {}

  void begin(std::size_t bucket) {
    auto const elements = plan_.buckets.buckets[bucket].range.size();
    reduced_.push_back(lanes_.communicate(parts_.all_reduce(elements)));
  }
  void advance() {}
  void finish(std::size_t bucket) { lanes_.await(reduced_[bucket]); }

 private:
  DdpPlan const& plan_;
  StepParts const& parts_;
  Lanes& lanes_;
  std::vector<double> reduced_;  ///< when; by bucket
};

/// As CodedSums has it. Of each piece every rank sends its slices' codes to their owners, and the
/// code of its own slice's sum to all others.
class CodedPieces {
 public:
  CodedPieces(DdpPlan const& plan, StepParts const& parts, Lanes& lanes)
      : plan_(plan),
        parts_(parts),
        lanes_(lanes),
        speed_(parts.costs.codec(plan.config.compression)),
        ranks_(parts.plan.placement.workers()),
        exchanges_(plan.coded.size()) {}

  void begin(std::size_t bucket) {
    for_pieces_of(bucket, [&](std::size_t piece) {
      lanes_.compute(speed_.encode * bytes(piece));
      exchanges_[piece] = {Stage::exchanging, lanes_.communicate(messages(piece))};
    });
  }

  void advance() {
    for (std::size_t piece = 0; piece < exchanges_.size(); ++piece)
      if (exchanges_[piece].stage == Stage::exchanging && exchanges_[piece].end <= lanes_.now())
        add_up(piece);
  }

  void finish(std::size_t bucket) {
    for (std::size_t piece = 0; piece < exchanges_.size(); ++piece)
      if (exchanges_[piece].stage == Stage::exchanging) add_up(piece);
    for_pieces_of(bucket, [&](std::size_t piece) {
      lanes_.await(exchanges_[piece].end);
      lanes_.compute(speed_.decode * bytes(piece));
      exchanges_[piece] = {};
    });
  }

 private:
  enum class Stage { idle, exchanging, returning };
  struct Exchange {
    Stage stage = Stage::idle;
    double end = 0;  ///< of the messages that are under way
  };

  void add_up(std::size_t piece) {
    lanes_.await(exchanges_[piece].end);
    auto const slice_bytes = bytes(piece) / ranks_;
    lanes_.compute(slice_bytes *
                   (speed_.decode + (ranks_ - 1) * speed_.decode_and_add + speed_.encode));
    exchanges_[piece] = {Stage::returning, lanes_.communicate(messages(piece))};
  }

  template <class Act>
  void for_pieces_of(std::size_t bucket, Act act) const {
    for (std::size_t piece = 0; piece < plan_.coded.size(); ++piece)
      if (plan_.coded[piece].bucket == bucket) act(piece);
  }

  /// Of the gradients in fp32.
  double bytes(std::size_t piece) const {
    return static_cast<double>(plan_.coded[piece].range.size() * plan_.element_size);
  }
  /// To and from every other rank.
  Transfer messages(std::size_t piece) const {
    return (ranks_ - 1) * parts_.costs.exchange.at(static_cast<double>(plan_.coded[piece].wire));
  }

  DdpPlan const& plan_;
  StepParts const& parts_;
  Lanes& lanes_;
  CodecSpeed speed_;
  int ranks_;
  std::vector<Exchange> exchanges_;  ///< by piece
};

/// As SparseSums has it: all that a rank takes is gathered, or all-reduced where places are known.
class SparseMessages {
 public:
  SparseMessages(DdpPlan const& plan, StepParts const& parts, Lanes& lanes)
      : plan_(plan),
        parts_(parts),
        lanes_(lanes),
        speed_(parts.costs.codec(plan.config.compression)),
        gathers_(plan.config.compression.places_travel()),
        ranks_(parts.plan.placement.workers()) {}

  void begin(std::size_t bucket) {
    auto const bytes = static_cast<double>(plan_.sparse[bucket].bytes);
    lanes_.compute(speed_.encode * gradient_bytes(bucket));
    arrived_.push_back(lanes_.communicate(gathers_ ? parts_.costs.all_gather.at(ranks_ * bytes)
                                                   : parts_.costs.all_reduce.at(bytes)));
  }
  void advance() {}
  void finish(std::size_t bucket) {
    lanes_.await(arrived_[bucket]);
    auto const added = 4.0 * static_cast<double>(plan_.sparse[bucket].count);
    lanes_.compute(speed_.decode * gradient_bytes(bucket) +
                   speed_.decode_and_add * (gathers_ ? ranks_ : 1) * added);
  }

 private:
  double gradient_bytes(std::size_t bucket) const {
    return static_cast<double>(plan_.sparse[bucket].range.size() * plan_.element_size);
  }

  DdpPlan const& plan_;
  StepParts const& parts_;
  Lanes& lanes_;
  CodecSpeed speed_;
  bool gathers_;
  double ranks_;
  std::vector<double> arrived_;  ///< when; by bucket
};

/// As LowRankSums has it. Half of the work on a matrix comes before the first sum.
class Factors {
 public:
  Factors(DdpPlan const& plan, StepParts const& parts, Lanes& lanes)
      : plan_(plan),
        parts_(parts),
        lanes_(lanes),
        speed_(parts.costs.codec(plan.config.compression)) {}

  void begin(std::size_t bucket) {
    send_second();
    lanes_.compute(speed_.encode / 2 * matrix_bytes(bucket));
    arrived_.push_back(lanes_.communicate(parts_.all_reduce(plan_.low_rank[bucket].first)));
    half_ = true;
  }
  void advance() {}
  void finish(std::size_t bucket) {
    send_second();
    lanes_.await(arrived_[bucket]);
    lanes_.compute(speed_.decode * matrix_bytes(bucket));
  }

 private:
  /// Of the bucket that began last.
  void send_second() {
    if (!std::exchange(half_, false)) return;
    auto const bucket = arrived_.size() - 1;
    auto const& plan = plan_.low_rank[bucket];
    lanes_.await(arrived_[bucket]);
    lanes_.compute(speed_.encode / 2 * matrix_bytes(bucket) +
                   speed_.decode_and_add * 4.0 * static_cast<double>(plan.first));
    if (plan.second > 0) arrived_[bucket] = lanes_.communicate(parts_.all_reduce(plan.second));
  }

  double matrix_bytes(std::size_t bucket) const {
    return static_cast<double>(plan_.low_rank[bucket].matrix_elements() * plan_.element_size);
  }

  DdpPlan const& plan_;
  StepParts const& parts_;
  Lanes& lanes_;
  CodecSpeed speed_;
  bool half_ = false;            ///< of the last bucket only the first sum is under way
  std::vector<double> arrived_;  ///< what is under way of a bucket
};

template <class Sums>
void run(Sums sums, DdpPlan const& plan, StepParts const& parts, Lanes& lanes) {
  auto const& config = plan.config;
  auto const& buckets = plan.buckets.buckets;
  for (int micro = 0; micro < config.micro_batches; ++micro) {
    bool const overlaps = config.overlap && micro + 1 == config.micro_batches;
    lanes.compute(parts.costs.forward_s);
    std::size_t next = 0;
    for (int block = parts.blocks() - 1; block >= 0; --block) {
      lanes.compute(parts.backward_of_block());
      if (overlaps) sums.advance();
      for (; overlaps && next < buckets.size() && buckets[next].first_block == block; ++next)
        sums.begin(next);
    }
  }
  for (std::size_t i = 0; !config.overlap && i < buckets.size(); ++i) sums.begin(i);
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    sums.finish(i);
    lanes.compute(parts.update_of(buckets[i].range.size()));
  }
}

}  // namespace

void run_step(DdpPlan const& plan, StepParts const& parts, Lanes& lanes) {
  if (!plan.coded.empty())
    run(CodedPieces(plan, parts, lanes), plan, parts, lanes);
  else if (!plan.sparse.empty())
    run(SparseMessages(plan, parts, lanes), plan, parts, lanes);
  else if (!plan.low_rank.empty())
    run(Factors(plan, parts, lanes), plan, parts, lanes);
  else
    run(PlainSums(plan, parts, lanes), plan, parts, lanes);
}

}  // namespace stratagem
