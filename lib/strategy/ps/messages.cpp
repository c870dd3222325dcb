#include "strategy/ps/messages.hpp"

#include <initializer_list>

#include <ATen/ATen.h>

namespace stratagem {
namespace {

// Numbers as doubles: exact for all counts below 2^53.
constexpr std::int64_t fields = 7;

at::Tensor message_of(std::initializer_list<double> values) {
  auto message = empty_message();
  std::ranges::copy(values, message.data_ptr<double>());
  return message;
}

}  // namespace

at::Tensor empty_message() {
  return at::zeros({fields}, at::kDouble);
}

at::Tensor to_message(PsLine const& line) {
  return message_of({line.last ? 1.0 : 0.0, static_cast<double>(line.step),
                     static_cast<double>(line.first_slot), line.lr, line.loss,
                     static_cast<double>(line.correct), line.stop ? 1.0 : 0.0});
}

PsLine line_from(at::Tensor const& message) {
  auto const* of = message.data_ptr<double>();
  return {.last = of[0] != 0,
          .step = static_cast<std::int64_t>(of[1]),
          .first_slot = static_cast<std::int64_t>(of[2]),
          .lr = of[3],
          .loss = of[4],
          .correct = static_cast<std::int64_t>(of[5]),
          .stop = of[6] != 0};
}

at::Tensor to_message(PsAnswer const& answer) {
  return message_of({answer.loss, static_cast<double>(answer.correct), answer.stop ? 1.0 : 0.0,
                     static_cast<double>(answer.share)});
}

PsAnswer answer_from(at::Tensor const& message) {
  auto const* of = message.data_ptr<double>();
  return {.loss = of[0],
          .correct = static_cast<std::int64_t>(of[1]),
          .stop = of[2] != 0,
          .share = static_cast<std::int64_t>(of[3])};
}

}  // namespace stratagem
