#include "strategy/ps/protocol/messages.hpp"

#include <initializer_list>

#include <ATen/ATen.h>

namespace stratagem {
namespace {

// Numbers as doubles: exact for all counts below 2^53.
constexpr std::int64_t fields = 10;

double number_of(Requests const& requests) {
  return (requests.stop ? 1 : 0) + (requests.interrupt ? 2 : 0) + (requests.save ? 4 : 0);
}

Requests requests_of(double number) {
  auto const bits = static_cast<int>(number);
  return {.stop = (bits & 1) != 0, .interrupt = (bits & 2) != 0, .save = (bits & 4) != 0};
}

at::Tensor message_of(std::initializer_list<double> values) {
  auto message = empty_message();
  std::ranges::copy(values, message.data_ptr<double>());
  return message;
}

}  // namespace

at::Tensor empty_message() {
  return at::zeros({fields}, at::kDouble);
}

at::Tensor to_message(PushHeader const& line) {
  return message_of({line.last ? 1.0 : 0.0, static_cast<double>(line.step),
                     static_cast<double>(line.first_slot), line.lr, line.loss,
                     static_cast<double>(line.correct), number_of(line.requests),
                     static_cast<double>(line.collectives), static_cast<double>(line.replicas),
                     line.pulls ? 1.0 : 0.0});
}

PushHeader line_from(at::Tensor const& message) {
  auto const* of = message.data_ptr<double>();
  return {.last = of[0] != 0,
          .step = static_cast<std::int64_t>(of[1]),
          .first_slot = static_cast<std::int64_t>(of[2]),
          .lr = of[3],
          .loss = of[4],
          .correct = static_cast<std::int64_t>(of[5]),
          .requests = requests_of(of[6]),
          .pulls = of[9] != 0,
          .collectives = static_cast<std::uint64_t>(of[7]),
          .replicas = static_cast<std::uint64_t>(of[8])};
}

at::Tensor to_message(PullReply const& answer) {
  return message_of({answer.loss, static_cast<double>(answer.correct), number_of(answer.requests),
                     static_cast<double>(answer.share), answer.alike ? 1.0 : 0.0, answer.norm,
                     static_cast<double>(answer.lag)});
}

PullReply answer_from(at::Tensor const& message) {
  auto const* of = message.data_ptr<double>();
  return {.loss = of[0],
          .correct = static_cast<std::int64_t>(of[1]),
          .requests = requests_of(of[2]),
          .share = static_cast<std::int64_t>(of[3]),
          .lag = static_cast<std::int64_t>(of[6]),
          .alike = of[4] != 0,
          .norm = of[5]};
}

at::Tensor to_message(PushTrailer const& end) {
  return message_of({end.usable ? 1.0 : 0.0, end.factor, end.loss_scale});
}

PushTrailer end_from(at::Tensor const& message) {
  auto const* of = message.data_ptr<double>();
  return {.usable = of[0] != 0, .factor = of[1], .loss_scale = of[2]};
}

at::Tensor to_message(PullNote const& note) {
  return message_of({static_cast<double>(note.reads)});
}

PullNote note_from(at::Tensor const& message) {
  return {.reads = static_cast<std::int64_t>(message.data_ptr<double>()[0])};
}

}  // namespace stratagem
