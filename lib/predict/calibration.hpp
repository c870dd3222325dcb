#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compress/codec_speed.hpp"
#include "model/model.hpp"
#include "plan/run_config.hpp"
#include "predict/activations.hpp"
#include "predict/link.hpp"
#include "strategy/timing/curve.hpp"

namespace stratagem {

/// What decides how long a pass takes, but for the number of its samples.
struct PassKind {
  std::string model;
  std::int64_t classes = 10;
  std::int64_t channels = 3;  ///< 0: text
  std::int64_t size = 32;     ///< of the images [pixels], or of sequences [tokens]
  std::string memory_format;  ///< contiguous or channels_last
  std::string precision;      ///< one of precision_names
  std::int64_t recompute = 0;
  bool dropout = true;
  bool fused = true;
  std::int64_t threads = 1;  ///< of LibTorch, per rank

  bool operator==(PassKind const&) const = default;
};

/// `model` was made from `config`; `threads` are those of a rank.
PassKind pass_kind(RunConfig const& config, Model const& model, int threads);
/// "lenet at 32 x 32, fp32, 1 thread".
std::string describe(PassKind const& kind);

/// Passes of one kind, of as many ranks of a node at once.
struct PassTimes {
  PassKind kind;
  int ranks_on_node = 1;
  Curve forward, backward;  ///< of one pass, over its samples
  double optimizer_s = 0;   ///< an update of all parameters
};

/// One operation of a communicator, over its bytes as bench() counts them.
struct OperationTimes {
  std::string operation;  ///< as bench_operation_names has it
  std::string backend;
  int ranks = 1;
  int ranks_per_node = 1;
  Curve time;
};

/// What a server does for one push, over the elements of its shard: see time_push().
struct ServerTimes {
  std::string work;  ///< one of server_works()
  Curve push;
};

/// A checkpoint's files, by as many ranks of a node at once, over the bytes that each of them
/// saves.
struct SavingTimes {
  int ranks_on_node = 1;
  Curve time;
};

/// A code of gradients, by as many ranks of a node at once.
struct CodingTimes {
  int ranks_on_node = 1;
  std::vector<CodecTimes> codecs;
};

/// Images of the user that become a model's input, by as many ranks of a node at once.
struct ReadTimes {
  std::string dataset;
  std::int64_t size = 32;  ///< of the input [pixels]
  int ranks_on_node = 1;
  double image_s = 0;  ///< one thread of a rank, for one image
};

/// What was measured of a machine, by `stratagem calibrate`, or was published of it, so that the
/// time of a step can be predicted for it: a value, kept as a JSON file.
struct Calibration {
  std::string host;
  std::string device;  ///< "NVIDIA A100-SXM4-80GB", or the processor's name
  bool on_gpu = false;
  int cores = 1;        ///< of a node, that ranks can use
  std::string version;  ///< of stratagem, with its commit
  std::string libtorch, mpi;
  std::string measured;  ///< when [UTC]
  std::vector<PassTimes> passes;
  std::vector<OperationTimes> operations;
  std::vector<ServerTimes> servers;
  std::vector<SavingTimes> savings;
  std::vector<CodingTimes> codings;
  std::vector<ReadTimes> reads;
  ActivationPasses activations;  ///< small passes, from which `plan` predicts what others hold
  /// Whose figures these are and which formulas made numbers of them; empty where all was measured.
  std::string published;
  /// Of each rank to all others, to be assumed: see over_link(); not kept in the file.
  std::optional<Link> link;

  /// Whether its passes of one kind stand for the other. Of published ones nobody says how many
  /// classes, channels and threads they had, but for threads of a CPU, which decide.
  bool stands_for(PassKind const& known, PassKind const& wanted) const;

  /// Of so many ranks, how many share a node: as measured, else all of them where no measurement
  /// has met a second node.
  int ranks_on_node(int ranks) const;
  /// A checkpoint by `ranks` ranks, each of which saves `bytes`: as measured with the number of
  /// ranks on a node that is nearest. 0 where saving was never measured.
  double save_s(int ranks, double bytes) const;
  /// As measured with the number of ranks on a node that is nearest; empty where it never was.
  std::vector<CodecTimes> codecs(int ranks_on_node) const;
  /// One image of the user's own at this size, as measured with the number of ranks on a node that
  /// is nearest. Error(usage) if it was not measured.
  double read_s(DataConfig const& data, int ranks_on_node) const;
};

/// Replaces in `known` what `newer` has too and adds what it has more. Error(usage) when they are
/// of different machines or programs, or `known` is of published figures.
void add_to(Calibration& known, Calibration const& newer);

std::string to_json(Calibration const& calibration);
/// Error(usage) naming `name` and what is wrong with it.
Calibration parse_calibration(std::string const& text, std::string const& name);
Calibration read_calibration(std::filesystem::path const& path);

}  // namespace stratagem
