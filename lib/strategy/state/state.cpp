#include "strategy/state/state.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include <ATen/ATen.h>

#include "base/contract.hpp"
#include "base/text.hpp"
#include "comm/agreement.hpp"
#include "strategy/state/model_layout.hpp"

namespace stratagem {
namespace {

constexpr int piece_tag = 0;  // no other message is under way between two rounds

ParameterState const* find(State const& state, std::string const& kind, int worker) {
  auto const found = std::ranges::find_if(state.of_parameters, [&](ParameterState const& of) {
    return of.kind == kind && of.worker == worker;
  });
  return found == state.of_parameters.end() ? nullptr : &*found;
}

/// What a rank holds and wants of each entry.
struct Holding {
  std::vector<std::vector<FlatRange>> held;
  std::vector<bool> wanted;
};

/// "<entry> <begin> <end>" of each piece, then "<entry>" of each that is wanted; on two lines.
std::string to_text(ParameterState const& state, ParameterLayout const& layout,
                    Wanted const& wanted) {
  std::string text;
  for (auto const& piece : state.pieces)
    text += str(piece.entry, ' ', piece.range.begin, ' ', piece.range.end, ' ');
  text += '\n';
  for (std::size_t entry = 0; entry < layout.entries().size(); ++entry)
    if (wanted(layout.entries()[entry].spec.name)) text += str(entry, ' ');
  return text;
}

Holding holding_from(std::string const& text, std::size_t entries) {
  Holding holding{std::vector<std::vector<FlatRange>>(entries), std::vector<bool>(entries)};
  auto const line_end = text.find('\n');
  auto const pieces = parse_integers(text.substr(0, line_end));
  for (std::size_t i = 0; i + 2 < pieces.size(); i += 3)
    holding.held[static_cast<std::size_t>(pieces[i])].push_back({pieces[i + 1], pieces[i + 2]});
  for (auto const entry : parse_integers(text.substr(line_end + 1)))
    holding.wanted[static_cast<std::size_t>(entry)] = true;
  return holding;
}

/// Elements that one rank hands to another.
struct Handover {
  int from = 0;
  FlatRange range;
};

/// The first element from `begin` on that some rank holds, or `numel`.
std::int64_t next_held(std::vector<Holding> const& ranks, std::size_t entry, std::int64_t begin,
                       std::int64_t numel) {
  auto next = numel;
  for (auto const& rank : ranks)
    for (auto const& range : rank.held[entry])
      if (range.begin >= begin) next = std::min(next, range.begin);
  return next;
}

/// What rank `to` gets of an entry of `numel` elements: what it holds itself, the rest from the
/// lowest rank that has it; nothing of elements that no rank holds.
std::vector<Handover> handovers(std::vector<Holding> const& ranks, std::size_t entry,
                                std::int64_t numel, int to) {
  std::vector<int> order(ranks.size());
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin(), order.begin() + to, order.begin() + to + 1);
  std::vector<Handover> found;
  for (std::int64_t done = 0; done < numel;) {
    auto const before = done;
    for (int const rank : order) {
      for (auto const& range : ranks[static_cast<std::size_t>(rank)].held[entry]) {
        if (range.begin > done || range.end <= done) continue;
        found.push_back({rank, {done, range.end}});
        done = range.end;
      }
    }
    if (done == before) done = next_held(ranks, entry, done, numel);
  }
  return found;
}

/// The elements `range` of an entry, which lie in one piece of this rank.
at::Tensor values_of(ParameterState const& state, std::size_t entry, FlatRange range) {
  for (auto const& piece : state.pieces) {
    if (piece.entry != entry || piece.range.begin > range.begin || piece.range.end < range.end)
      continue;
    auto const part = [&](at::Tensor const& term) {
      return term.narrow(0, range.begin - piece.range.begin, range.size());
    };
    auto sum = part(piece.terms.front());
    if (piece.terms.size() > 1) sum = sum.clone();
    for (std::size_t i = 1; i < piece.terms.size(); ++i) sum.add_(part(piece.terms[i]));
    return sum;
  }
  expects(false, "this rank holds what it said");
  return {};
}

void load(ParameterState const& state, ParameterLayout const& layout,
          std::map<std::string, at::Tensor> const& tensors) {
  at::NoGradGuard const no_grad;
  for (auto const& piece : state.pieces) {
    auto const& entry = layout.entries()[piece.entry];
    auto const given = find(tensors, entry.spec);
    if (!given.defined()) continue;
    // Only the sum is known: each term becomes an equal part of it.
    auto const terms = piece.terms.size();
    auto const part = terms > 1 ? given * (1.0 / static_cast<double>(terms)) : given;
    for (auto const& term : piece.terms) copy_overlap(part, entry, 0, piece.range, term);
  }
}

}  // namespace

std::vector<StatePiece> pieces_of(ParameterLayout const& layout, FlatRange held,
                                  at::Tensor const& memory) {
  std::vector<StatePiece> pieces;
  for (std::size_t i = 0; i < layout.entries().size(); ++i) {
    auto const& entry = layout.entries()[i];
    auto const part = overlap({entry.offset, entry.offset + entry.spec.numel()}, held);
    if (part.size() <= 0) continue;
    pieces.push_back({i,
                      {part.begin - entry.offset, part.end - entry.offset},
                      {memory.narrow(0, part.begin - held.begin, part.size())}});
  }
  return pieces;
}

NamedTensors gather(State const& state, std::string const& kind, Model const& model,
                    Wanted const& wanted, Communicator& communicator, int worker) {
  at::NoGradGuard const no_grad;
  auto const* own = find(state, kind, worker);
  if (own == nullptr) return {};
  auto const layout = make_layout(model);
  auto const& entries = layout.entries();
  std::vector<Holding> ranks;
  for (auto const& text : gather_texts(communicator, to_text(*own, layout, wanted)))
    ranks.push_back(holding_from(text, entries.size()));

  NamedTensors tensors;
  auto const self = communicator.rank();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    at::Tensor whole;  // where this rank wants it
    std::vector<at::Tensor> sent;
    std::vector<Work> works;
    for (int to = 0; to < communicator.size(); ++to) {
      if (!ranks[static_cast<std::size_t>(to)].wanted[i]) continue;
      auto const numel = entries[i].spec.numel();
      if (to == self) whole = communicator.allocate(numel, own->type);
      for (auto const& [from, range] : handovers(ranks, i, numel, to)) {
        if (from == self && to == self) {
          whole.narrow(0, range.begin, range.size()).copy_(values_of(*own, i, range));
        } else if (from == self) {
          sent.push_back(values_of(*own, i, range));
          works.push_back(communicator.send(sent.back(), to, piece_tag));
        } else if (to == self) {
          works.push_back(
              communicator.receive(whole.narrow(0, range.begin, range.size()), from, piece_tag));
        }
      }
    }
    for (auto& work : works) work.wait_on_host();
    if (whole.defined())
      append(tensors, entries[i].spec, whole.as_strided(entries[i].spec.shape, entries[i].strides));
  }
  return tensors;
}

void load(State const& state, std::string const& kind, Model const& model,
          std::map<std::string, at::Tensor> const& tensors, std::optional<int> worker) {
  auto const layout = make_layout(model);
  for (auto const& own : state.of_parameters)
    if (own.kind == kind && (!worker || own.worker == *worker)) load(own, layout, tensors);
}

void load_buffers(State const& state, int worker, Model const& model,
                  std::map<std::string, at::Tensor> const& tensors) {
  auto const own = state.buffers.find(worker);
  if (own != state.buffers.end()) load(model, tensors, own->second);
}

void load_weights(State const& state, Model const& model,
                  std::map<std::string, at::Tensor> const& tensors) {
  load(state, State::parameters, model, tensors);
  for (auto const& [worker, _] : state.buffers) load_buffers(state, worker, model, tensors);
}

}  // namespace stratagem
