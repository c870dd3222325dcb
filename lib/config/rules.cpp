#include "config/rules.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>

#include "base/text.hpp"
#include "keys/home.hpp"
#include "model/zoo/transformer_sizes.hpp"

namespace stratagem {

namespace {

/// A name for people as one of a folder: it stays in the folder where it is made.
std::string folder_named(std::string name) {
  constexpr std::size_t longest = 200;  // bytes: file systems take 255
  for (auto& c : name)
    if (c == '/' || static_cast<unsigned char>(c) < ' ') c = '-';
  auto end = std::min(name.size(), longest);
  while (end < name.size() && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;
  name.resize(end);
  return name == "." || name == ".." ? "run" : name;
}

/// "flowers" of "flowers", "data/flowers/" and "/data/flowers".
std::string last_name(std::string const& path) {
  auto const normal = std::filesystem::path(path).lexically_normal();
  auto const name = normal.has_filename() ? normal.filename() : normal.parent_path().filename();
  return name.empty() || name == "." || name == ".." ? "data" : name.string();
}

using Refuse = std::function<void(std::string const& path, std::string message)>;

/// `file` stands in the place of `name`, which was given all the same.
void refuse_both(std::string const& name, std::string const& file, Given const& given,
                 Refuse const& refuse) {
  refuse(name,
         str("is given, and so is ", file, " (", given.place_of(file).text, "); leave one out"));
}

void check_own_data(DataConfig const& data, Given const& given, Refuse const& refuse) {
  if (!data.path.empty() && given.has("data.dataset"))
    refuse_both("data.dataset", "data.path", given, refuse);
  if (data.path.empty())
    for (auto const* key : {"mean", "stddev", "flip", "decode_threads"})
      if (auto const path = str("data.", key); given.has(path))
        refuse(path, "is of your own images, which need data.path");
  if (data.mean.size() != data.stddev.size())
    refuse("data.mean", str("has ", data.mean.size(), " numbers, and data.stddev ",
                            data.stddev.size(), "; give one of each per channel"));
}

}  // namespace

void derive_defaults(RunConfig& config, Given const& given, Environment const& environment) {
  auto& [run, expect, data, model, precision, optimizer, strategy, comm, trace, checkpoint,
         watchdog, integrity] = config;
  if (!model.file.empty()) {
    model.name = std::filesystem::path(model.file).stem().string();
    if (!given.has("model.num_classes")) model.num_classes = 0;
  }
  if (!data.path.empty()) data.dataset = last_name(data.path);
  if (takes_text(model)) {
    if (!given.has("model.num_classes")) model.num_classes = 0;
    if (data.seq_len == 0) data.seq_len = context_of(model);
  }
  if (run.name.empty()) run.name = str(model.name, '-', name_of(strategy));
  if (run.out.empty()) run.out = "runs/" + folder_named(run.name);
  if (!given.has("data.root"))
    data.root = expand_home(environment("STRATAGEM_DATA").value_or(""), environment).path;
  derive_defaults(strategy, [&](std::string const& key) { return given.has("strategy." + key); });
  if (data.batch_per_worker > 0 && !given.has("data.global_batch")) data.global_batch = 0;
  // bf16 has the range of fp32: its loss is scaled only for those who ask for it.
  if (precision.compute == Precision::bf16 && !given.has("precision.loss_scale"))
    precision.loss_scale = LossScale::none;
}

void check_rules(RunConfig const& config, Given const& given, Problems& problems) {
  auto const refuse = [&](std::string const& path, std::string message) {
    problems.add(given.place_of(path), path, std::move(message));
  };
  auto const& data = config.data;
  if (data.global_batch > 0 && data.batch_per_worker > 0)
    refuse("data.batch_per_worker",
           str("is ", data.batch_per_worker, " while data.global_batch is ", data.global_batch,
               " (", given.place_of("data.global_batch").text, "); leave one out or set it to 0"));
  if (data.global_batch == 0 && data.batch_per_worker == 0)
    refuse("data.global_batch", "is 0 and so is data.batch_per_worker; one must be >= 1");
  check_own_data(data, given, refuse);
  if (auto const problem = contradiction_in(config.optimizer))
    refuse("optimizer." + problem->name, problem->message);
  auto const& model = config.model;
  if (!model.file.empty() && given.has("model.name"))
    refuse_both("model.name", "model.file", given, refuse);
  if (model.num_classes == 0 && model.file.empty() && !takes_text(model))
    refuse("model.num_classes", "is 0, which needs model.file; else it must be in [2, 1048576]");
  if (data.seq_len > 0 && !takes_text(model))
    refuse("data.seq_len", "is of text, which needs a model of text, such as gpt2");
  if (config.model.head == HeadWeights::fresh && config.model.weights.empty())
    refuse("model.head", "is fresh, which needs model.weights");
  if (model.frozen && model.file.empty()) refuse("model.frozen", "is true, which needs model.file");
}

}  // namespace stratagem
