#include "model/exported/first_loss.hpp"

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>

#include <ATen/ATen.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "model/exported/exported_model.hpp"
#include "model/exported/file/fields.hpp"

namespace stratagem {
namespace {

constexpr char const* record = "extra/stratagem.json";
constexpr std::int64_t most_samples = 64;

struct Expected {
  bool training;
  double loss, tolerance;
};

struct FirstLoss {
  std::int64_t samples;
  std::vector<Expected> expected;
};

/// Nothing where the file has none for such images.
std::optional<FirstLoss> read_first_loss(Fields const& fields, InputShape const& input) {
  if (!fields.archive().has(record)) return std::nullopt;
  auto const content = fields.parse(record);
  auto const& of = fields.object(content, "first_loss");
  std::vector<std::int64_t> shape;
  for (auto const& size : fields.array(of, "shape"))
    shape.push_back(fields.as_integer(size, "shape of the first loss"));
  if (shape != std::vector{input.channels, input.size, input.size}) return std::nullopt;
  FirstLoss found{.samples = fields.integer(of, "samples"), .expected = {}};
  if (found.samples < 1 || found.samples > most_samples)
    fields.refuse(str("its first loss is of ", found.samples, " samples"));
  for (bool const training : {true, false}) {
    auto const* mode = training ? "training" : "evaluation";
    if (!of.contains(mode)) continue;
    auto const& numbers = fields.object(of, mode);
    found.expected.push_back(
        {training, fields.as_number(fields.member(numbers, "loss"), "the first loss"),
         fields.as_number(fields.member(numbers, "tolerance"), "the first loss's tolerance")});
  }
  return found;
}

/// The 32-bit finaliser of MurmurHash3.
std::uint32_t mixed(std::uint32_t bits) {
  bits = (bits ^ (bits >> 16)) * 0x85EBCA6BU;
  bits = (bits ^ (bits >> 13)) * 0xC2B2AE35U;
  return bits ^ (bits >> 16);
}

/// Numbers from -1 to 1, exact in fp32.
at::Tensor images(std::int64_t samples, InputShape const& input) {
  auto tensor = at::empty({samples, input.channels, input.size, input.size});
  auto* const values = tensor.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i)
    values[i] = static_cast<float>(mixed(static_cast<std::uint32_t>(i)) >> 8) * 0x1p-23F - 1;
  return tensor;
}

/// With the file's values, of which training changes a copy.
double loss_of(Model const& model, TensorMap const& state, at::Tensor x, bool training) {
  at::NoGradGuard const no_gradients;
  auto const samples = x.size(0);
  if (model.memory_format == MemoryFormat::channels_last)
    x = x.contiguous(at::MemoryFormat::ChannelsLast);
  Context const context{.training = training, .dropout = false, .fused = model.fused};
  for (auto const& block : model.blocks) {
    std::vector<at::Tensor> parameters, buffers;
    for (auto const& spec : block->declaration().parameters())
      parameters.push_back(state.at(spec.name).to(at::kFloat));
    for (auto const& spec : block->declaration().buffers())
      buffers.push_back(state.at(spec.name).to(spec.type).clone());
    x = block->forward(x, {parameters, buffers, context});
  }
  auto const labels = at::arange(samples, at::kLong).remainder(model.classes);
  return at::cross_entropy_loss(x.to(at::kDouble), labels).item<double>();
}

bool agree(double loss, Expected const& expected) {
  return std::abs(loss - expected.loss) <= expected.tolerance;  // not if one is NaN
}

std::string cure_for(ModelConfig config, Model const& model, InputShape const& input,
                     std::function<bool(Model const&)> const& agrees) {
  constexpr char const* again = "export the model again with analysis/export_model.py";
  if (model.memory_format != MemoryFormat::channels_last) return again;
  config.memory_format = MemoryFormat::contiguous;
  return agrees(make_exported_model(config, input)) ? "set model.memory_format: contiguous" : again;
}

}  // namespace

void check_first_loss(ModelConfig const& config, Model const& model, InputShape const& input) {
  ProgramArchive const archive(config.file);
  auto const first = read_first_loss(Fields(archive), input);
  if (!first || first->expected.empty()) return;
  auto const state = exported_state(config.file);
  auto const x = images(first->samples, input);
  for (auto const& expected : first->expected) {
    auto const loss = loss_of(model, state, x, expected.training);
    if (agree(loss, expected)) continue;
    auto const agrees = [&](Model const& other) {
      return agree(loss_of(other, state, x, expected.training), expected);
    };
    throw Error(ExitCode::bad_data,
                str("model file ", config.file, ": its first loss in ",
                    expected.training ? "training" : "evaluation", " is ", loss, ", Python's was ",
                    expected.loss),
                str("they may differ by ", expected.tolerance,
                    "; the file was altered, or an operator computes something else here"),
                cure_for(config, model, input, agrees));
  }
}

}  // namespace stratagem
