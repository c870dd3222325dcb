#include "predict/calibration.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <tuple>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/files/file.hpp"
#include "base/text.hpp"
#include "model/zoo/transformer_sizes.hpp"
#include "plan/run_plan.hpp"

namespace stratagem {
namespace {

using nlohmann::json;

constexpr char schema_name[] = "stratagem-calibration";
constexpr int schema_version = 2;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 48;

json to_document(Curve const& curve, char const* size) {
  auto list = json::array();
  for (auto const& point : curve.points())
    list.push_back({{size, point.size}, {"seconds", point.seconds}});
  return list;
}

/// A number that a time or size can be.
double positive(json const& value) {
  auto const number = value.get<double>();
  if (!std::isfinite(number) || number <= 0)
    throw std::out_of_range(str("a time or size is ", value.dump(), ", which cannot be"));
  return number;
}

int count(json const& value) {
  auto const number = value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
  if (number < 1 || number > 1 << 20)
    throw std::out_of_range(str("a number of ranks, cores or threads is ", value.dump()));
  return static_cast<int>(number);
}

/// Not negative, and a number of bytes that can be added to others.
std::int64_t whole(json const& value) {
  auto const number = value.is_number_unsigned() ? value.get<std::uint64_t>() : most_bytes + 1;
  if (number > most_bytes) throw std::out_of_range(str("a count or size is ", value.dump()));
  return static_cast<std::int64_t>(number);
}

Curve curve_from(json const& list, char const* size) {
  std::vector<Curve::Point> points;
  for (auto const& item : list) {
    points.push_back({positive(item.at(size)), positive(item.at("seconds"))});
    if (points.size() > 1 && points.back().size <= points[points.size() - 2].size)
      throw std::out_of_range(str(size, " do not rise"));
  }
  if (points.empty()) throw std::out_of_range("a curve has no points");
  return Curve(std::move(points));
}

json to_document(PassTimes const& pass) {
  auto const& kind = pass.kind;
  return {{"model", kind.model},
          {"classes", kind.classes},
          {"channels", kind.channels},
          {"size", kind.size},
          {"memory_format", kind.memory_format},
          {"precision", kind.precision},
          {"recompute", kind.recompute},
          {"dropout", kind.dropout},
          {"fused", kind.fused},
          {"threads", kind.threads},
          {"ranks_on_node", pass.ranks_on_node},
          {"optimizer_s", pass.optimizer_s},
          {"forward", to_document(pass.forward, "samples")},
          {"backward", to_document(pass.backward, "samples")}};
}

PassTimes pass_from(json const& item) {
  return {.kind = {.model = item.at("model").get<std::string>(),
                   .classes = count(item.at("classes")),
                   .channels = count(item.at("channels")),
                   .size = count(item.at("size")),
                   .memory_format = item.at("memory_format").get<std::string>(),
                   .precision = item.at("precision").get<std::string>(),
                   .recompute = whole(item.at("recompute")),
                   .dropout = item.at("dropout").get<bool>(),
                   .fused = item.value("fused", true),
                   .threads = count(item.at("threads"))},
          .ranks_on_node = count(item.at("ranks_on_node")),
          .forward = curve_from(item.at("forward"), "samples"),
          .backward = curve_from(item.at("backward"), "samples"),
          .optimizer_s = positive(item.at("optimizer_s"))};
}

json to_document(CodingTimes const& times) {
  auto codecs = json::array();
  for (auto const& [code, rounding, speed] : times.codecs)
    codecs.push_back({{"code", name_of(code)},
                      {"rounding", name_of(rounding)},
                      {"encode_s_per_B", speed.encode},
                      {"decode_s_per_B", speed.decode},
                      {"decode_and_add_s_per_B", speed.decode_and_add}});
  return {{"ranks_on_node", times.ranks_on_node}, {"codecs", codecs}};
}

/// Its place in `names`.
template <std::size_t count>
std::size_t place_of(json const& value, std::array<std::string_view, count> const& names) {
  auto const found = std::ranges::find(names, value.get<std::string>());
  if (found == names.end()) throw std::out_of_range(str(value.dump(), " is not known"));
  return static_cast<std::size_t>(found - names.begin());
}

CodingTimes coding_from(json const& item) {
  CodingTimes times{.ranks_on_node = count(item.at("ranks_on_node"))};
  for (auto const& one : item.at("codecs"))
    times.codecs.push_back(
        {.code = static_cast<Code>(place_of(one.at("code"), code_names)),
         .rounding = static_cast<Rounding>(place_of(one.at("rounding"), rounding_names)),
         .speed = {.encode = positive(one.at("encode_s_per_B")),
                   .decode = positive(one.at("decode_s_per_B")),
                   .decode_and_add = positive(one.at("decode_and_add_s_per_B"))}});
  return times;
}

json to_document(ActivationPasses const& passes) {
  auto list = json::array();
  for (auto const& [kind, pass] : passes)
    list.push_back({{"kind", kind}, {"kept", pass.kept}, {"peaks", pass.peaks}});
  return list;
}

/// The moments of a pass: each block forward and backward, and the loss between.
ActivationPass activation_from(json const& item) {
  ActivationPass pass{.kept = whole(item.at("kept"))};
  for (auto const& peak : item.at("peaks")) pass.peaks.push_back(whole(peak));
  if (pass.peaks.size() % 2 == 0) throw std::out_of_range("a pass lacks moments");
  return pass;
}

Calibration calibration_from(json const& document) {
  Calibration result{.host = document.at("host").get<std::string>(),
                     .device = document.at("device").get<std::string>(),
                     .on_gpu = document.at("on_gpu").get<bool>(),
                     .cores = count(document.at("cores")),
                     .version = document.at("version").get<std::string>(),
                     .libtorch = document.at("libtorch").get<std::string>(),
                     .mpi = document.at("mpi").get<std::string>(),
                     .measured = document.at("measured").get<std::string>()};
  for (auto const& item : document.at("passes")) result.passes.push_back(pass_from(item));
  for (auto const& item : document.at("operations"))
    result.operations.push_back({.operation = item.at("operation").get<std::string>(),
                                 .backend = item.at("backend").get<std::string>(),
                                 .ranks = count(item.at("ranks")),
                                 .ranks_per_node = count(item.at("ranks_per_node")),
                                 .time = curve_from(item.at("time"), "bytes")});
  for (auto const& item : document.at("servers"))
    result.servers.push_back({.work = item.at("work").get<std::string>(),
                              .push = curve_from(item.at("push"), "elements")});
  for (auto const& item : document.at("savings"))
    result.savings.push_back({.ranks_on_node = count(item.at("ranks_on_node")),
                              .time = curve_from(item.at("time"), "bytes")});
  for (auto const& item : document.value("codings", json::array()))  // younger than the others
    result.codings.push_back(coding_from(item));
  for (auto const& item : document.value("reads", json::array()))  // likewise
    result.reads.push_back({.dataset = item.at("dataset").get<std::string>(),
                            .size = count(item.at("size")),
                            .ranks_on_node = count(item.at("ranks_on_node")),
                            .image_s = positive(item.at("image_s"))});
  for (auto const& item : document.at("activations"))
    result.activations.emplace(item.at("kind").get<std::string>(), activation_from(item));
  result.published = document.value("published", "");
  return result;
}

/// `items` with `newer` in the place of the one that is `alike`, or at the end.
template <class Item, class Alike>
void put(std::vector<Item>& items, Item const& newer, Alike alike) {
  auto const found =
      std::ranges::find_if(items, [&](Item const& known) { return alike(known, newer); });
  if (found == items.end())
    items.push_back(newer);
  else
    *found = newer;
}

}  // namespace

namespace {

/// What its name does not say: the digest of a file's graph, or the size of a transformer.
std::string name_of(RunConfig const& config, Model const& model) {
  if (!model.graph.empty()) return model.name + " " + model.graph;
  auto const size = size_of(config.model);
  if (!size) return model.name;
  auto name = str(model.name, " ", size->layers, "/", size->heads, "/", size->width);
  if (size->patch > 0) name += str(", patch ", size->patch);
  if (config.model.experts > 0) name += str(", ", config.model.experts, " experts");
  if (config.model.dropout_rate > 0) name += ", dropout";
  return name;
}

}  // namespace

PassKind pass_kind(RunConfig const& config, Model const& model, int threads) {
  auto const input = input_shape(config);
  return {.model = name_of(config, model),
          .classes = model.classes,
          .channels = input.channels,
          .size = input.is_text() ? input.tokens : input.size,
          .memory_format =
              model.memory_format == MemoryFormat::channels_last ? "channels_last" : "contiguous",
          .precision = precision_names.at(static_cast<std::size_t>(config.precision.compute)),
          .recompute = config.model.recompute.every,
          .dropout = config.model.dropout,
          .fused = config.model.fused,
          .threads = threads};
}

std::string describe(PassKind const& kind) {
  auto const shape =
      kind.channels == 0 ? str(kind.size, " tokens") : str(kind.size, " x ", kind.size);
  auto text = str(kind.model, " at ", shape, ", ", kind.precision, ", ", kind.threads,
                  kind.threads == 1 ? " thread" : " threads");
  if (kind.recompute > 0) text += ", with recompute";
  if (!kind.dropout) text += ", without dropout";
  if (!kind.fused) text += ", not fused";
  return text;
}

int Calibration::ranks_on_node(int ranks) const {
  int most = 0;
  bool several_nodes = false;
  for (auto const& operation : operations) {
    if (operation.ranks == ranks) return operation.ranks_per_node;
    most = std::max(most, operation.ranks_per_node);
    several_nodes = several_nodes || operation.ranks > operation.ranks_per_node;
  }
  return several_nodes ? std::min(most, ranks) : ranks;
}

double Calibration::save_s(int ranks, double bytes) const {
  auto const wanted = ranks_on_node(ranks);
  auto const nearest = std::ranges::min_element(
      savings, {}, [&](SavingTimes const& one) { return std::abs(one.ranks_on_node - wanted); });
  return nearest == savings.end() ? 0 : nearest->time.at(bytes);
}

std::vector<CodecTimes> Calibration::codecs(int ranks_on_node) const {
  auto const nearest = std::ranges::min_element(codings, {}, [&](CodingTimes const& one) {
    return std::abs(one.ranks_on_node - ranks_on_node);
  });
  return nearest == codings.end() ? std::vector<CodecTimes>() : nearest->codecs;
}

double Calibration::read_s(DataConfig const& data, int ranks_on_node) const {
  ReadTimes const* nearest = nullptr;
  for (auto const& one : reads) {
    if (one.dataset != data.dataset || one.size != data.input_size) continue;
    auto const distance = [&](ReadTimes const& of) {
      return std::abs(of.ranks_on_node - ranks_on_node);
    };
    if (nearest == nullptr || distance(one) < distance(*nearest)) nearest = &one;
  }
  if (nearest == nullptr)
    throw Error(ExitCode::usage,
                str("the calibration does not say how fast the images of ", data.dataset,
                    " are read at ", data.input_size, " pixels"),
                {}, "add it with `stratagem calibrate CONFIG -o FILE`, on that machine");
  return nearest->image_s;
}

bool Calibration::stands_for(PassKind const& known, PassKind const& wanted) const {
  if (published.empty()) return known == wanted;
  return known.model == wanted.model && known.size == wanted.size &&
         known.precision == wanted.precision && known.recompute == wanted.recompute &&
         (on_gpu || known.threads == wanted.threads);
}

void add_to(Calibration& known, Calibration const& newer) {
  if (!known.published.empty())
    throw Error(ExitCode::usage, "the calibration that is there cannot be added to",
                "it holds published figures, not measurements", "name another file with -o");
  for (auto const& [what, before, now] :
       {std::tuple{"device", known.device, newer.device},
        {"cores", std::to_string(known.cores), std::to_string(newer.cores)},
        {"stratagem", known.version, newer.version},
        {"LibTorch", known.libtorch, newer.libtorch}})
    if (before != now)
      throw Error(ExitCode::usage, "the calibration that is there cannot be added to",
                  str("its ", what, " is ", before, ", here it is ", now),
                  "name another file with -o");
  known.host = newer.host;
  known.measured = newer.measured;
  for (auto const& pass : newer.passes)
    put(known.passes, pass, [](PassTimes const& a, PassTimes const& b) {
      return a.kind == b.kind && a.ranks_on_node == b.ranks_on_node;
    });
  for (auto const& operation : newer.operations)
    put(known.operations, operation, [](OperationTimes const& a, OperationTimes const& b) {
      return a.operation == b.operation && a.ranks == b.ranks;
    });
  for (auto const& server : newer.servers)
    put(known.servers, server,
        [](ServerTimes const& a, ServerTimes const& b) { return a.work == b.work; });
  for (auto const& saving : newer.savings)
    put(known.savings, saving, [](SavingTimes const& a, SavingTimes const& b) {
      return a.ranks_on_node == b.ranks_on_node;
    });
  for (auto const& coding : newer.codings)
    put(known.codings, coding, [](CodingTimes const& a, CodingTimes const& b) {
      return a.ranks_on_node == b.ranks_on_node;
    });
  for (auto const& read : newer.reads)
    put(known.reads, read, [](ReadTimes const& a, ReadTimes const& b) {
      return a.dataset == b.dataset && a.size == b.size && a.ranks_on_node == b.ranks_on_node;
    });
  for (auto const& [kind, pass] : newer.activations) known.activations.insert_or_assign(kind, pass);
}

std::string to_json(Calibration const& calibration) {
  auto passes = json::array(), operations = json::array(), servers = json::array(),
       savings = json::array(), codings = json::array(), reads = json::array();
  for (auto const& pass : calibration.passes) passes.push_back(to_document(pass));
  for (auto const& operation : calibration.operations)
    operations.push_back({{"operation", operation.operation},
                          {"backend", operation.backend},
                          {"ranks", operation.ranks},
                          {"ranks_per_node", operation.ranks_per_node},
                          {"time", to_document(operation.time, "bytes")}});
  for (auto const& server : calibration.servers)
    servers.push_back({{"work", server.work}, {"push", to_document(server.push, "elements")}});
  for (auto const& saving : calibration.savings)
    savings.push_back(
        {{"ranks_on_node", saving.ranks_on_node}, {"time", to_document(saving.time, "bytes")}});
  for (auto const& coding : calibration.codings) codings.push_back(to_document(coding));
  for (auto const& read : calibration.reads)
    reads.push_back({{"dataset", read.dataset},
                     {"size", read.size},
                     {"ranks_on_node", read.ranks_on_node},
                     {"image_s", read.image_s}});
  json document{{"schema_name", schema_name},
                {"schema_version", schema_version},
                {"host", calibration.host},
                {"device", calibration.device},
                {"on_gpu", calibration.on_gpu},
                {"cores", calibration.cores},
                {"version", calibration.version},
                {"libtorch", calibration.libtorch},
                {"mpi", calibration.mpi},
                {"measured", calibration.measured},
                {"passes", passes},
                {"operations", operations},
                {"servers", servers},
                {"savings", savings},
                {"codings", codings},
                {"reads", reads},
                {"activations", to_document(calibration.activations)}};
  if (!calibration.published.empty()) document["published"] = calibration.published;
  return document.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

Calibration parse_calibration(std::string const& text, std::string const& name) {
  auto const reject = [&](std::string const& why) -> Error {
    return {ExitCode::usage, "not a usable calibration: " + name, why,
            "make one with `stratagem calibrate`, on the machine that the job will run on"};
  };
  auto const document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object() || !document.contains("schema_name") ||
      document["schema_name"] != schema_name)
    throw reject("it is not what `stratagem calibrate` writes");
  if (document.value("schema_version", json()) != schema_version)
    throw reject(str("its schema_version is ", document.value("schema_version", json()).dump(),
                     ", this program's is ", schema_version));
  try {
    return calibration_from(document);
  } catch (json::exception const& problem) {
    throw reject(problem.what());
  } catch (std::out_of_range const& problem) {
    throw reject(problem.what());
  }
}

Calibration read_calibration(std::filesystem::path const& path) {
  return parse_calibration(read_text(path, ExitCode::usage), path.string());
}

}  // namespace stratagem
