#include "model/model_card.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/bad_data.hpp"
#include "base/files/file.hpp"

namespace stratagem {
namespace {

constexpr std::uintmax_t most_card = 1 << 20;  // [B]

/// What a card tells of the computation, and which key of the configuration changes it; else none.
struct Fact {
  char const* name;
  char const* key;
};
constexpr Fact facts[]{{"model_type", nullptr},
                       {"n_head", "model.heads"},
                       {"n_layer", "model.layers"},
                       {"n_embd", "model.width"},
                       {"n_inner", nullptr},
                       {"n_positions", "model.context"},
                       {"n_ctx", "model.context"},
                       {"vocab_size", "model.num_classes"},
                       {"tie_word_embeddings", "model.tie"},
                       {"activation_function", nullptr},
                       {"layer_norm_epsilon", nullptr},
                       {"scale_attn_weights", nullptr},
                       {"scale_attn_by_inverse_layer_idx", nullptr},
                       {"reorder_and_upcast_attn", nullptr},
                       {"add_cross_attention", nullptr}};

/// Names of one function: GELU by tanh.
constexpr std::array<std::string_view, 4> same_activation{"gelu_new", "gelu_pytorch_tanh",
                                                          "gelu_fast", "gelu_accurate"};

bool is_tanh_gelu(nlohmann::json const& value) {
  return value.is_string() &&
         std::ranges::count(same_activation, value.get_ref<std::string const&>()) > 0;
}

bool agree(nlohmann::json const& stated, nlohmann::json const& computed) {
  return stated.is_null() || stated == computed || (is_tanh_gelu(stated) && is_tanh_gelu(computed));
}

nlohmann::json read_card(std::filesystem::path const& path) {
  auto const text = read_text(path, ExitCode::bad_data, most_card);
  auto card = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!card.is_object())
    throw bad_data(path.string(), "what the weights beside it are of cannot be read",
                   "a JSON object", card.is_discarded() ? "damaged JSON" : card.type_name(),
                   "fetch it again, or move it elsewhere");
  return card;
}

}  // namespace

void compare_card(Model const& model, std::filesystem::path const& folder) {
  auto const path = folder / "config.json";
  std::error_code failed;
  if (model.card.empty() || !std::filesystem::exists(path, failed)) return;
  auto const stated = read_card(path);
  auto const computed = nlohmann::json::parse(model.card);
  std::vector<std::string> differences, keys;
  for (auto const& [name, key] : facts) {
    if (!stated.contains(name) || !computed.contains(name)) continue;
    if (agree(stated[name], computed[name])) continue;
    differences.push_back(str(
        name, " is ", stated[name].dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
        " there and ", computed[name].dump(), " here"));
    if (key != nullptr && std::ranges::find(keys, key) == keys.end()) keys.emplace_back(key);
  }
  if (differences.empty()) return;
  throw Error(ExitCode::usage,
              str(path.string(), ": the weights beside it are of a model that computes otherwise"),
              join(differences, "; "),
              keys.size() < differences.size()
                  ? "take other weights, or export the model with analysis/export_model.py"
                  : str("set ", join(keys, ", "), " as there"));
}

}  // namespace stratagem
