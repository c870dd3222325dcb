#include "data/idx/gunzip.hpp"

#include <algorithm>
#include <limits>
#include <new>

#include <zlib.h>

#include "base/text.hpp"
#include "data/source.hpp"

namespace stratagem {
namespace {

constexpr int gzip_window_bits = 15 + 16;  // the largest window; only gzip headers

/// The state of one decompression.
class Inflater {
 public:
  Inflater() {
    if (inflateInit2(&stream_, gzip_window_bits) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(Inflater const&) = delete;
  Inflater& operator=(Inflater const&) = delete;

  /// Decompresses as far as input and room allow, and removes both from the two spans. Returns
  /// zlib's code.
  int advance(std::span<std::byte const>& input, std::span<std::byte>& room) {
    auto const given = clamp(input.size());
    auto const wanted = clamp(room.size());
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<Bytef const*>(input.data()));
    stream_.avail_in = given;
    stream_.next_out = reinterpret_cast<Bytef*>(room.data());
    stream_.avail_out = wanted;
    int const code = inflate(&stream_, Z_NO_FLUSH);
    input = input.subspan(given - stream_.avail_in);
    room = room.subspan(wanted - stream_.avail_out);
    return code;
  }
  std::string reason() const { return stream_.msg != nullptr ? stream_.msg : "a broken stream"; }

 private:
  static uInt clamp(std::size_t bytes) {
    return static_cast<uInt>(std::min<std::size_t>(bytes, std::numeric_limits<uInt>::max()));
  }

  z_stream stream_{};
};

}  // namespace

Gunzipped gunzip(std::filesystem::path const& path, std::span<std::byte const> compressed,
                 std::size_t limit) {
  Gunzipped result;
  result.content.resize(limit);
  Inflater inflater;
  auto input = compressed;
  auto room = std::span(result.content);
  int code = Z_OK;
  while (code == Z_OK) code = inflater.advance(input, room);
  // Without progress, zlib returns Z_BUF_ERROR: either there is no room for more output, or no more
  // input.
  bool const out_of_room = code == Z_BUF_ERROR && room.empty() && !input.empty();
  if (code == Z_BUF_ERROR && !out_of_room)
    throw bad_file(path, "the gzip file ends early", "a whole gzip stream",
                   str(compressed.size(), " bytes of one"));
  if (code != Z_STREAM_END && !out_of_room)
    throw bad_file(path, "the gzip file is corrupt", "a gzip stream", inflater.reason());
  result.content.resize(limit - room.size());
  result.ended = code == Z_STREAM_END;
  result.unread_bytes = result.ended ? input.size() : 0;
  return result;
}

}  // namespace stratagem
