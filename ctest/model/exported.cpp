#include <filesystem>
#include <fstream>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "model/exported/exported_model.hpp"
#include "model/exported/file/extent.hpp"
#include "model/exported/remarks.hpp"
#include "model/support.hpp"
#include "model/weights.hpp"
#include "support/exported_files.hpp"
#include "support/scratch.hpp"

namespace stratagem {
namespace {

using test::Records;
using Json = nlohmann::json;

ModelConfig config_of(std::filesystem::path const& file) {
  return {.name = "tiny", .file = file.string(), .num_classes = 0};
}

Model tiny(std::string const& torch = "2.11") {
  return make_model(config_of(test::tiny_exported(torch)), {.channels = 1, .size = 28});
}

std::vector<std::string> block_names(Model const& model) {
  std::vector<std::string> names;
  for (auto const& block : model.blocks) names.push_back(block->name());
  return names;
}

/// Parameters and buffers with the file's values.
class Loaded {
 public:
  explicit Loaded(Model const& model, TensorMap const& tensors) {
    for (auto const& block : model.blocks) {
      auto& own = blocks_.emplace_back();
      for (auto const& spec : block->declaration().parameters())
        own.parameters.push_back(tensors.at(spec.name).clone());
      for (auto const& spec : block->declaration().buffers())
        own.buffers.push_back(tensors.at(spec.name).clone());
    }
  }

  at::Tensor run(Model const& model, at::Tensor x, Context const& context) const {
    at::NoGradGuard const no_gradients;
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      x = model.blocks[i]->forward(x, {blocks_[i].parameters, blocks_[i].buffers, context});
    return x;
  }
  at::Tensor buffer(Model const& model, std::string const& name) const {
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      auto const& specs = model.blocks[i]->declaration().buffers();
      for (std::size_t k = 0; k < specs.size(); ++k)
        if (specs[k].name == name) return blocks_[i].buffers[k];
    }
    throw std::out_of_range(name);
  }

 private:
  struct Own {
    std::vector<at::Tensor> parameters, buffers;
  };
  std::vector<Own> blocks_;
};

at::Tensor images(std::int64_t count) {
  at::manual_seed(3);
  return at::randn({count, 1, 28, 28});
}

TEST(Exported, IsTheSameFromEveryVersionOfTorch) {
  auto const newest = tiny();
  auto const state = exported_state(test::tiny_exported());
  auto const logits = Loaded(newest, state).run(newest, images(5), {});
  EXPECT_EQ(logits.sizes(), at::IntArrayRef({5, 10}));
  for (auto const* torch : {"2.8", "2.9", "2.10", "2.15"}) {
    auto const model = tiny(torch);
    EXPECT_EQ(block_names(model), block_names(newest)) << torch;
    auto const older = exported_state(test::tiny_exported(torch));
    ASSERT_EQ(older.size(), state.size()) << torch;
    for (auto const& [name, tensor] : state) EXPECT_TRUE(older.at(name).equal(tensor)) << name;
    EXPECT_TRUE(Loaded(model, older).run(model, images(5), {}).equal(logits)) << torch;
  }
}

TEST(Exported, IsDividedWhereOneTensorCrosses) {
  // `square` is used twice, so both uses are in one block; what follows a layer stays with it.
  auto const model = tiny();
  EXPECT_EQ(block_names(model),
            (std::vector<std::string>{"stem", "first", "second", "mix", "norm", "square", "head"}));
  EXPECT_EQ(model.classes, 10);
  EXPECT_EQ(model.head, (std::vector<std::string>{"head.weight", "head.bias"}));
  EXPECT_EQ(model.parameter_count(), 8042);
  EXPECT_EQ(model.memory_format, MemoryFormat::contiguous);  // it has a layer norm
  EXPECT_EQ(model.graph.size(), 16U);
}

TEST(Exported, SaysForHowManySamplesItWasExported) {
  test::Scratch const scratch;
  auto const file = scratch.path() / "limited.pt2";
  test::write_changed(file, [](Records& records) {
    auto graph = Json::parse(records.at("models/model.json"));
    graph["range_constraints"].begin().value()["max_val"] = 3;
    records["models/model.json"] = graph.dump();
  });
  auto const model = make_model(config_of(file), {.channels = 1, .size = 28});
  EXPECT_EQ(model.most_samples, 3);
  EXPECT_EQ(tiny().most_samples, 0);
  // Evaluations are made in parts.
  auto const state = exported_state(file);
  auto const parts = Loaded(model, state).run(model, images(7), {});
  EXPECT_TRUE(at::allclose(parts, Loaded(tiny(), state).run(tiny(), images(7), {}), 1e-5, 1e-6));
}

TEST(Exported, StateHasTheNamesOfTheStateDict) {
  std::set<std::string> names;
  for (auto const& state : state_of(tiny())) names.insert(state.name);
  EXPECT_EQ(names.size(), 18U + 10U);
  EXPECT_TRUE(names.contains("stem.1.num_batches_tracked"));
  EXPECT_TRUE(names.contains("shift"));
  EXPECT_FALSE(names.contains("scale"));  // not persistent
}

TEST(Exported, RunningStatisticsChangeInTrainingOnly) {
  auto const model = tiny();
  EXPECT_TRUE(model.mixes_samples());
  auto const state = exported_state(test::tiny_exported());
  Loaded const loaded(model, state);
  loaded.run(model, images(4), {});
  auto const counter = loaded.buffer(model, "first.norm.num_batches_tracked");
  auto const mean = loaded.buffer(model, "first.norm.running_mean");
  EXPECT_EQ(counter.item<std::int64_t>(), 0);
  EXPECT_TRUE(mean.equal(state.at("first.norm.running_mean")));
  loaded.run(model, images(4), {.training = true});
  EXPECT_EQ(counter.item<std::int64_t>(), 1);
  EXPECT_FALSE(mean.equal(state.at("first.norm.running_mean")));
}

/// Without batch norms' statistics of a batch, every sample has its own masks.
TEST(Exported, MasksBelongToSeedStepAndSlot) {
  auto const model = tiny();
  Loaded const loaded(model, exported_state(test::tiny_exported()));
  auto const run = [&](Context context) {
    context.training = true;
    return loaded.run(model, images(4), context);
  };
  auto const logits = run({.seed = 1, .step = 2, .first_slot = 8});
  EXPECT_TRUE(run({.seed = 1, .step = 2, .first_slot = 8}).equal(logits));
  EXPECT_FALSE(run({.seed = 2, .step = 2, .first_slot = 8}).equal(logits));
  EXPECT_FALSE(run({.seed = 1, .step = 3, .first_slot = 8}).equal(logits));
  EXPECT_FALSE(run({.seed = 1, .step = 2, .first_slot = 12}).equal(logits));
  auto const plain = run({.dropout = false, .seed = 1});
  EXPECT_TRUE(run({.dropout = false, .seed = 2}).equal(plain));
  EXPECT_FALSE(plain.equal(logits));
}

TEST(Exported, DoesNotOverwriteItsInput) {
  auto const model = tiny();
  Loaded const loaded(model, exported_state(test::tiny_exported()));
  auto const input = images(3);
  auto const before = input.clone();
  loaded.run(model, input, {.training = true});
  EXPECT_TRUE(input.equal(before));
}

TEST(Exported, ComputesInTheTypeOfItsInput) {
  auto const model = tiny();
  auto state = exported_state(test::tiny_exported());
  auto const fp32 = Loaded(model, state).run(model, images(4), {});
  auto doubled = state;
  for (auto& [name, tensor] : doubled)
    if (at::isFloatingType(tensor.scalar_type())) tensor = tensor.to(at::kDouble);
  auto const fp64 = Loaded(model, doubled).run(model, images(4).to(at::kDouble), {});
  EXPECT_EQ(fp64.scalar_type(), at::kDouble);
  EXPECT_TRUE(at::allclose(fp64, fp32.to(at::kDouble), 1e-4, 1e-5));
  auto halved = state;
  for (auto const& block : model.blocks)
    for (auto const& spec : block->declaration().parameters())
      if (!spec.keep_fp32) halved[spec.name] = state[spec.name].to(at::kBFloat16);
  auto const bf16 = Loaded(model, halved).run(model, images(4).to(at::kBFloat16), {});
  EXPECT_EQ(bf16.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::allclose(bf16.to(at::kFloat), fp32, 0.1, 0.05));
}

// Refusals.

struct Refusal {
  ExitCode code = ExitCode::done;
  std::string message;
};

Refusal refusal(ModelConfig const& config, InputShape const& input = {.channels = 1, .size = 28}) {
  try {
    auto const model = make_model(config, input);
    static_cast<void>(read_weights(config, model));
  } catch (Error const& error) {
    return {error.code(), error.what()};
  }
  return {};
}

void expect_refused(std::string const& what, std::function<void(Records&)> const& change,
                    std::string const& message) {
  test::Scratch const scratch;
  auto const file = scratch / "changed.pt2";
  test::write_changed(file, change);
  auto const found = refusal(config_of(file));
  EXPECT_EQ(found.code, ExitCode::bad_data) << what;
  EXPECT_NE(found.message.find(message), std::string::npos) << what << ": " << found.message;
  EXPECT_NE(found.message.find(file.string()), std::string::npos) << what << ": " << found.message;
}

constexpr char graph_record[] = "models/model.json";
constexpr char weights_record[] = "data/weights/model_weights_config.json";

/// A change of the graph's JSON.
std::function<void(Records&)> graph(std::function<void(Json& file, Json& nodes)> const& change) {
  return [change](Records& records) {
    auto file = Json::parse(records.at(graph_record));
    change(file, file["graph_module"]["graph"]["nodes"]);
    records[graph_record] = file.dump();
  };
}

Json& node_of(Json& nodes, std::string const& target) {
  for (auto& node : nodes)
    if (node["target"] == target) return node;
  throw std::out_of_range(target);
}
Json& argument_of(Json& node, std::string const& name) {
  for (auto& argument : node["inputs"])
    if (argument["name"] == name) return argument["arg"];
  throw std::out_of_range(name);
}

TEST(Exported, RefusesGraphsThatCannotBeTrained) {
  auto const conv = "torch.ops.aten.conv2d.default", relu = "torch.ops.aten.relu_.default";
  expect_refused("an unknown operator", graph([&](Json&, Json& nodes) {
                   node_of(nodes, conv)["target"] = "torch.ops.aten.fold.default";
                 }),
                 "operator aten::fold conv2d of module stem.0 (/opt/nets/tiny.py");
  expect_refused("an operator of another library", graph([&](Json&, Json& nodes) {
                   node_of(nodes, conv)["target"] = "torch.ops.torchvision.nms.default";
                 }),
                 "only operators of aten can be run");
  expect_refused(
      "a file", graph([&](Json&, Json& nodes) {
        auto& node = node_of(nodes, "torch.ops.aten.empty.memory_format");
        node["target"] = "torch.ops.aten.from_file.default";
        node["inputs"] = Json::array(
            {{{"name", "filename"}, {"arg", {{"as_string", "/etc/passwd"}}}, {"kind", 1}}});
      }),
      "could name a file");
  expect_refused("control flow", graph([&](Json&, Json& nodes) {
                   node_of(nodes, conv)["target"] = "torch.ops.higher_order.cond";
                 }),
                 "it is control flow, which is not known here");
  expect_refused("other random numbers", graph([&](Json&, Json& nodes) {
                   node_of(nodes, "torch.ops.aten.gelu.default")["target"] =
                       "torch.ops.aten.rand_like.default";
                 }),
                 "random numbers are known here only as dropout");
  expect_refused(
      "dropout of everything", graph([&](Json&, Json& nodes) {
        argument_of(node_of(nodes, "torch.ops.aten.dropout.default"), "p") = {{"as_float", 1.0}};
      }),
      "it drops with probability 1");
  expect_refused("a mask that is not scaled", graph([&](Json&, Json& nodes) {
                   node_of(nodes, "torch.ops.aten.div_.Tensor")["target"] =
                       "torch.ops.aten.mul_.Tensor";
                 }),
                 "must be divided by its probability");
  expect_refused("a mask drawn into a buffer", graph([&](Json&, Json& nodes) {
                   argument_of(node_of(nodes, "torch.ops.aten.bernoulli_.float"),
                               "self") = {{"as_tensor", {{"name", "b_shift"}}}};
                 }),
                 "it draws random numbers into shift");
  expect_refused(
      "a parameter that is written", graph([&](Json&, Json& nodes) {
        argument_of(node_of(nodes, relu), "self") = {{"as_tensor", {{"name", "p_mix_weight"}}}};
      }),
      "it writes parameter mix.weight");
  expect_refused("an argument that no schema has", graph([&](Json&, Json& nodes) {
                   node_of(nodes, relu)["inputs"].push_back(
                       {{"name", "strength"}, {"arg", {{"as_int", 1}}}, {"kind", 1}});
                 }),
                 "arguments that its schema does not know");
}

TEST(Exported, RefusesGraphsThatContradictThemselves) {
  auto const conv = "torch.ops.aten.conv2d.default";
  expect_refused(
      "a value before it is made", graph([&](Json&, Json& nodes) {
        argument_of(node_of(nodes, conv), "input") = {{"as_tensor", {{"name", "linear"}}}};
      }),
      "uses value linear before it is made");
  expect_refused("a value nobody describes", graph([&](Json&, Json& nodes) {
                   argument_of(node_of(nodes, conv), "input") = {{"as_tensor", {{"name", "y"}}}};
                 }),
                 "uses value y, which is not described");
  expect_refused("a value made twice",
                 graph([&](Json&, Json& nodes) { nodes.push_back(nodes.back()); }),
                 "is made twice");
  expect_refused("an unknown schema",
                 graph([](Json& file, Json&) { file["schema_version"]["major"] = 9; }),
                 "its schema is version 9 (torch 2.11.0");
  expect_refused(
      "a fixed number of samples", graph([](Json& file, Json&) {
        file["graph_module"]["graph"]["tensor_values"]["x"]["sizes"][0] = {{"as_int", 2}};
      }),
      "exported for exactly 2 samples");
  expect_refused("a shape that depends on data", graph([](Json& file, Json&) {
                   auto& size =
                       file["graph_module"]["graph"]["tensor_values"]["linear"]["sizes"][0];
                   size["as_expr"]["expr_str"] = "Symbol('u0', integer=True)";
                 }),
                 "the shape of value linear depends on data");
  expect_refused(
      "no graph", [](Records& records) { records.erase(graph_record); }, "it holds no graph");
  expect_refused(
      "no JSON", [](Records& records) { records[graph_record] = "{"; }, "is not a JSON object");
  expect_refused(
      "deep JSON",
      [](Records& records) {
        records[graph_record] = std::string(100000, '[') + std::string(100000, ']');
      },
      "has values within values");
  expect_refused(
      "an empty graph", [](Records& records) { records[graph_record] = "{}"; }, "its graph lacks");
}

TEST(Exported, RefusesWeightsThatAreNotTheGraphs) {
  expect_refused(
      "a tensor less", [](Records& records) { records.erase("data/weights/weight_0"); },
      "it has no record data/weights/weight_0");
  expect_refused(
      "half a tensor", [](Records& records) { records["data/weights/weight_0"].resize(8); },
      "have 8 bytes, its shape needs 288");
  auto const entry = [](std::function<void(Json&)> const& change) {
    return [change](Records& records) {
      auto table = Json::parse(records.at(weights_record));
      change(table["config"]["stem.0.weight"]);
      records[weights_record] = table.dump();
    };
  };
  expect_refused("another shape", entry([](Json& of) {
                   of["tensor_meta"]["sizes"][0] = {{"as_int", 9}};
                 }),
                 "another shape or type than in the graph");
  expect_refused("a pickle of one tensor", entry([](Json& of) { of["use_pickle"] = true; }),
                 "are a pickle");
  expect_refused("strides that lead out of its bytes", entry([](Json& of) {
                   of["tensor_meta"]["strides"][0] = {{"as_int", std::int64_t{1} << 62}};
                 }),
                 "have 288 bytes, its shape needs");
  expect_refused(
      "more numbers than bytes, by a stride of 0",
      [](Records& records) {
        Json const many = {{"as_int", std::int64_t{1} << 40}};
        auto file = Json::parse(records.at(graph_record));
        auto table = Json::parse(records.at(weights_record));
        auto& values = file["graph_module"]["graph"]["tensor_values"];
        auto& meta = table["config"]["stem.0.weight"]["tensor_meta"];
        values["p_stem_0_weight"]["sizes"][0] = meta["sizes"][0] = many;
        meta["strides"][0] = {{"as_int", 0}};
        records[graph_record] = file.dump();
        records[weights_record] = table.dump();
      },
      "have 288 bytes, its shape needs");
  expect_refused("a place that lies outside", entry([](Json& of) {
                   of["tensor_meta"]["storage_offset"] = {{"as_int", 1}};
                 }),
                 "have 288 bytes, its shape needs 292");
  expect_refused("a record outside", entry([](Json& of) { of["path_name"] = "../../etc/passwd"; }),
                 "it has no record data/weights/../../etc/passwd");
}

/// torch.export saves a tensor as it lies in memory.
TEST(Exported, ReadsWeightsWithTheirStrides) {
  test::Scratch const scratch;
  auto const file = scratch / "transposed.pt2";
  test::write_changed(file, [](Records& records) {
    auto table = Json::parse(records.at(weights_record));
    auto& meta = table["config"]["stem.0.weight"]["tensor_meta"];  // [8, 1, 3, 3]
    meta["strides"] =
        Json::array({{{"as_int", 1}}, {{"as_int", 1}}, {{"as_int", 24}}, {{"as_int", 8}}});
    records[weights_record] = table.dump();
  });
  auto const plain = exported_state(test::tiny_exported()).at("stem.0.weight");
  auto const found = exported_state(file).at("stem.0.weight");
  EXPECT_TRUE(found.equal(plain.flatten().as_strided({8, 1, 3, 3}, {1, 1, 24, 8})));
  EXPECT_TRUE(found.is_contiguous());
}

TEST(Exported, FrozenParametersAreConstantBuffers) {
  test::Scratch const scratch;
  auto const file = scratch / "frozen.pt2";
  test::write_changed(file, graph([](Json& content, Json&) {
                        auto& values = content["graph_module"]["graph"]["tensor_values"];
                        values["p_mix_weight"]["requires_grad"] = false;
                      }));
  auto const model = make_model(config_of(file), {.channels = 1, .size = 28});
  auto const frozen = exported_remarks(model).frozen;
  EXPECT_EQ(frozen.names, std::vector<std::string>{"mix.weight"});
  EXPECT_EQ(model.parameter_count() + frozen.elements, tiny().parameter_count());
  EXPECT_NE(model.graph, tiny().graph);
  for (auto const& state : state_of(model))
    EXPECT_FALSE(state.parameter && state.name == "mix.weight");
}

TEST(Exported, SaysWhatIsInEvaluationMode) {
  test::Scratch const scratch;
  auto const file = scratch / "evaluating.pt2";
  test::write_changed(file, graph([](Json&, Json& nodes) {
                        argument_of(node_of(nodes, "torch.ops.aten.dropout.default"),
                                    "train") = {{"as_bool", false}};
                      }));
  auto const said =
      exported_remarks(make_model(config_of(file), {.channels = 1, .size = 28})).evaluation;
  EXPECT_NE(said.find("operator aten::dropout"), std::string::npos) << said;
  EXPECT_EQ(exported_remarks(tiny()).evaluation, "");
}

TEST(Exported, SaysWhichBatchNormsTakeTheirBatchInEvaluation) {
  test::Scratch const scratch;
  auto const file = scratch / "by_batch.pt2";
  test::write_changed(file, graph([](Json&, Json& nodes) {
                        auto& norm = node_of(nodes, "torch.ops.aten.batch_norm.default");
                        for (char const* statistic : {"running_mean", "running_var"})
                          argument_of(norm, statistic) = {{"as_none", true}};
                      }));
  auto const said =
      exported_remarks(make_model(config_of(file), {.channels = 1, .size = 28})).by_batch;
  EXPECT_NE(said.find("keeps no running statistics"), std::string::npos) << said;
  EXPECT_EQ(exported_remarks(tiny()).by_batch, "");
}

/// In channels_last they would be others than in Python.
TEST(Exported, TakesContiguousWhereStridesMatter) {
  test::Scratch const scratch;
  auto const file = scratch / "strided.pt2";
  test::write_changed(file, graph([](Json&, Json& nodes) {
                        auto& node = node_of(nodes, "torch.ops.aten.view.default");
                        node["target"] = "torch.ops.aten.as_strided.default";
                        auto const input = argument_of(node, "self");
                        node["inputs"] = Json::array(
                            {{{"name", "self"}, {"arg", input}, {"kind", 1}},
                             {{"name", "size"}, {"arg", {{"as_ints", {1, 1}}}}, {"kind", 1}},
                             {{"name", "stride"}, {"arg", {{"as_ints", {1, 1}}}}, {"kind", 1}}});
                      }));
  auto config = config_of(file);
  EXPECT_EQ(make_model(config, {.channels = 1, .size = 28}).memory_format,
            MemoryFormat::contiguous);
  config.memory_format = MemoryFormat::channels_last;
  auto const refused = refusal(config);
  EXPECT_EQ(refused.code, ExitCode::usage);
  EXPECT_NE(refused.message.find("operator aten::as_strided"), std::string::npos)
      << refused.message;
}

TEST(Exported, RefusesFilesThatAreNoArchives) {
  test::Scratch const scratch;
  auto const file = scratch / "net.pt2";
  EXPECT_EQ(refusal(config_of(file)).code, ExitCode::usage);
  EXPECT_EQ(refusal(config_of(scratch.path())).code, ExitCode::usage);
  std::ofstream(file) << "no archive";
  EXPECT_EQ(refusal(config_of(file)).code, ExitCode::bad_data);
  std::ofstream(file, std::ios::trunc).close();
  EXPECT_EQ(refusal(config_of(file)).code, ExitCode::bad_data);
  test::write_changed(file, [](Records& records) { records["data.pkl"] = "a program"; });
  auto const pickled = refusal(config_of(file));
  EXPECT_EQ(pickled.code, ExitCode::bad_data);
  EXPECT_NE(pickled.message.find("analysis/export_model.py"), std::string::npos) << pickled.message;
  auto const whole = std::filesystem::file_size(test::tiny_exported());
  std::filesystem::copy_file(test::tiny_exported(), file,
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::resize_file(file, whole / 2);
  EXPECT_EQ(refusal(config_of(file)).code, ExitCode::bad_data);
}

TEST(Exported, RefusesAnotherInputThanExported) {
  auto config = config_of(test::tiny_exported());
  auto const larger = refusal(config, {.channels = 1, .size = 32});
  EXPECT_EQ(larger.code, ExitCode::usage);
  EXPECT_NE(larger.message.find("set data.input_size to 28"), std::string::npos) << larger.message;
  config.num_classes = 100;
  auto const classes = refusal(config);
  EXPECT_EQ(classes.code, ExitCode::usage);
  EXPECT_NE(classes.message.find("has 10 logits"), std::string::npos) << classes.message;
}

TEST(Exported, ExtentsAreReadFromExpressions) {
  auto const n = "Symbol('s77', positive=True, integer=True)";
  auto const read = [&](std::string const& text) { return extent_of(text, n); };
  EXPECT_EQ(read(n), (Extent{0, 1}));
  EXPECT_EQ(read("Integer(-3)"), (Extent{-3, 0}));
  EXPECT_EQ(read(str("Mul(Integer(9), ", n, ")")), (Extent{0, 9}));
  EXPECT_EQ(read(str("Add(Mul(Integer(2), ", n, "), Integer(5), ", n, ")")), (Extent{5, 3}));
  EXPECT_EQ(read(str("Mul(", n, ", ", n, ")")), std::nullopt);
  EXPECT_EQ(read("Symbol('s99', positive=True, integer=True)"), std::nullopt);
  EXPECT_EQ(read("Mul(Integer(4000000000), Integer(4000000000))"), std::nullopt);
  EXPECT_EQ(read("Integer(99999999999999999999)"), std::nullopt);
  EXPECT_EQ(read("Mul(Integer(2), Integer(3)"), std::nullopt);
  EXPECT_EQ(read(str(n, "x")), std::nullopt);
  EXPECT_EQ(read(""), std::nullopt);
  EXPECT_EQ(extent_of("", ""), std::nullopt);
}

}  // namespace
}  // namespace stratagem
