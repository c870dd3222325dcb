#include "data/labels.hpp"

#include <span>
#include <vector>

#include <ATen/ATen.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

std::span<std::int64_t const> labels_of(SampleSet const& set) {
  return {set.labels.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(set.size())};
}

std::string name_of(Dataset const& dataset, std::int64_t image) {
  auto const& test = dataset.test;
  return test.store ? test.store->name(test.first_stored + image) : str("image ", image);
}

}  // namespace

std::string untrained_labels(Dataset const& dataset) {
  if (dataset.train.text || dataset.test.size() == 0) return {};
  std::vector<bool> known;
  auto const mark = [&known](std::int64_t label) {
    auto const index = static_cast<std::size_t>(label);
    if (index >= known.size()) known.resize(index + 1);
    bool const before = known[index];
    known[index] = true;
    return before;
  };
  for (auto const label : labels_of(dataset.train)) mark(label);
  std::int64_t strange = 0;
  std::string first;
  auto const evaluated = labels_of(dataset.test);
  for (std::size_t i = 0; i < evaluated.size(); ++i) {
    if (mark(evaluated[i])) continue;
    if (++strange == 1)
      first =
          str("label ", evaluated[i], ", that of ", name_of(dataset, static_cast<std::int64_t>(i)));
  }
  return strange > 1 ? str(first, ", nor ", strange - 1, " other label(s)") : first;
}

void require_trained_labels(Dataset const& dataset, std::string const& cure) {
  if (auto const found = untrained_labels(dataset); !found.empty())
    throw Error(ExitCode::bad_data, str(dataset.name, ": no image to train on has ", found),
                "it is among those to evaluate, and cannot be learnt", cure);
}

}  // namespace stratagem
