#include "data/tokens/token_text.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/contract.hpp"
#include "base/hash/hash.hpp"

namespace stratagem {
namespace {

constexpr std::int64_t sample_bytes = 1 << 16;
constexpr std::int64_t samples = 16;  // of a file, at equal distances

template <class Token>
void widen(std::span<std::byte const> bytes, std::span<std::int64_t> into) {
  for (std::size_t i = 0; i < into.size(); ++i) {
    Token token;
    std::memcpy(&token, bytes.data() + i * sizeof(Token), sizeof(Token));
    into[i] = token;
  }
}

}  // namespace

TokenText::TokenText(std::shared_ptr<RandomAccessFile const> file, std::int64_t offset,
                     std::int64_t count, int width)
    : file_(std::move(file)), offset_(offset), count_(count), width_(width) {
  expects(width == 1 || width == 2 || width == 4, "tokens have 1, 2 or 4 bytes");
  expects(offset + count * width <= file_->size(), "the file has the tokens");
}

TokenText::TokenText(std::vector<std::uint8_t> tokens)
    : memory_(std::make_shared<std::vector<std::uint8_t> const>(std::move(tokens))),
      count_(std::ssize(*memory_)) {}

std::string TokenText::name() const {
  return file_ ? file_->path().string() : "synthetic text";
}

std::string TokenText::identity() const {
  Hash hash;
  auto const bytes = count_ * width_;
  hash.add(static_cast<std::uint64_t>(offset_)).add(static_cast<std::uint64_t>(bytes));
  if (file_) hash.add(file_->path().filename().string());
  auto const all = !file_ || bytes <= samples * sample_bytes;
  auto const step = all ? sample_bytes : (bytes - sample_bytes) / (samples - 1);
  std::vector<std::byte> sample;
  for (std::int64_t begin = 0; begin < bytes; begin += step) {
    sample.resize(static_cast<std::size_t>(std::min(sample_bytes, bytes - begin)));
    read_bytes(offset_ + begin, sample);
    hash.add(std::span<std::byte const>(sample));
  }
  return hash.hex();
}

TokenText TokenText::part(std::int64_t first, std::int64_t count) const {
  expects(0 <= first && 0 <= count && first + count <= count_, "a part of the text");
  auto part = *this;
  part.offset_ += first * width_;
  part.count_ = count;
  return part;
}

void TokenText::read(std::int64_t first, std::span<std::int64_t> into) const {
  expects(0 <= first && first + std::ssize(into) <= count_, "the text has the tokens");
  std::vector<std::byte> bytes(into.size() * static_cast<std::size_t>(width_));
  read_bytes(place_of(first), bytes);
  if (width_ == 1) return widen<std::uint8_t>(bytes, into);
  if (width_ == 2) return widen<std::uint16_t>(bytes, into);
  widen<std::uint32_t>(bytes, into);
}

void TokenText::read_bytes(std::int64_t offset, std::span<std::byte> into) const {
  if (file_) return file_->read(offset, into);
  std::memcpy(into.data(), memory_->data() + offset, into.size());
}

}  // namespace stratagem
