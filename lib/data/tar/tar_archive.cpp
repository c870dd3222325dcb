#include "data/tar/tar_archive.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/bad_data.hpp"
#include "base/error.hpp"
#include "base/files/random_access_file.hpp"
#include "base/portable_text.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

namespace fs = std::filesystem;
using namespace std::string_view_literals;

constexpr std::int64_t block = 512;  // [B]

// Read at once: the headers, small contents and extended headers before an image are within it.
constexpr std::int64_t window_bytes = 4096;
constexpr std::int64_t most_extension_bytes = 64 << 10;
constexpr std::size_t longest_name = 4096;  // what Linux accepts [B]
// Archives are padded with zeros to a multiple of 10 KiB, or what their writer was told. No more is
// checked of what follows an archive.
constexpr std::int64_t most_checked_padding = 1 << 20;

struct Field {
  std::size_t begin, size;
};
constexpr Field name_field{0, 100}, size_field{124, 12}, checksum_field{148, 8},
    magic_field{257, 6}, prefix_field{345, 155};
constexpr std::size_t type_byte = 156;
constexpr std::string_view ustar_magic("ustar\0", 6);  // GNU tar has a space instead of NUL

constexpr char copy_again[] = "copy it again, or write it again";
constexpr char write_again[] = "write it again with tar";
constexpr char name_it[] = "write the archive again with names like folder/file.jpg";
constexpr std::string_view extension_types = "LKxg";

struct Header {
  std::string name;
  char type = '0';
  std::int64_t size = 0;
  std::int64_t offset = 0;  ///< of the header itself
};

/// What extended headers say about the member that follows them.
struct Extension {
  std::optional<std::string> name;
  std::optional<std::int64_t> size;
  bool sparse = false;
  bool any = false;
};

std::string_view view(std::string_view header, Field const& field) {
  return header.substr(field.begin, field.size);
}

std::string_view up_to_nul(std::string_view text) {
  return text.substr(0, text.find('\0'));
}

bool is_zero(std::string_view bytes) {
  return bytes.find_first_not_of('\0') == std::string_view::npos;
}

std::string in_quotes(std::string_view text) {
  return str('"', printable(text), '"');
}

/// Octal digits, maybe between spaces and NULs.
std::optional<std::int64_t> parse_octal(std::string_view field) {
  field.remove_prefix(std::min(field.find_first_not_of(' '), field.size()));
  auto const digits = field.substr(0, field.find_last_not_of(" \0"sv) + 1);
  std::int64_t value = 0;
  auto const* const end = digits.data() + digits.size();
  auto const [stop, error] = std::from_chars(digits.data(), end, value, 8);
  if (error != std::errc{} || stop != end || value < 0) return std::nullopt;
  return value;
}

/// Octal, or as GNU tar writes large numbers: big-endian after a set bit. The largest number stands
/// for those that are too large.
std::optional<std::int64_t> parse_number_field(std::string_view field) {
  auto const lead = static_cast<unsigned char>(field.front());
  if (lead < 0x80) return parse_octal(field);
  if (lead >= 0xC0) return std::nullopt;  // negative
  std::int64_t value = lead & 0x3F;
  for (char const c : field.substr(1)) {
    if (value > std::numeric_limits<std::int64_t>::max() >> 8)
      return std::numeric_limits<std::int64_t>::max();
    value = value << 8 | static_cast<unsigned char>(c);
  }
  return value;
}

/// Sum of the header's bytes as Char, with spaces in place of the checksum.
template <class Char>
std::int64_t checksum(std::string_view header) {
  std::int64_t sum = ' ' * static_cast<std::int64_t>(checksum_field.size);
  for (char const c : header) sum += static_cast<Char>(c);
  for (char const c : view(header, checksum_field)) sum -= static_cast<Char>(c);
  return sum;
}

std::string header_name(std::string_view header) {
  std::string name(up_to_nul(view(header, name_field)));
  if (view(header, magic_field) != ustar_magic) return name;
  auto const prefix = up_to_nul(view(header, prefix_field));
  return prefix.empty() ? name : str(prefix, "/", name);
}

bool is_regular(char type) {
  return type == '0' || type == '\0' || type == '7';
}

bool is_folder(Header const& header) {
  return header.type == '5' || (is_regular(header.type) && header.name.ends_with('/'));
}

bool is_extension(char type) {
  return extension_types.find(type) != std::string_view::npos;
}

/// All other types are refused.
bool is_read(char type) {
  return is_regular(type) || type == '5' || is_extension(type);
}

struct OtherType {
  char type;
  char const* description;
  char const* cure;
};
constexpr char dereference[] = "write the archive with tar --dereference --hard-dereference";
constexpr char leave_out[] = "leave it out of the archive";
constexpr OtherType sparse{'S', "a sparse file", "write the archive with tar without --sparse"};
constexpr OtherType other_types[]{
    {'1', "a hard link", dereference},
    {'2', "a symbolic link", dereference},
    {'3', "a character device", leave_out},
    {'4', "a block device", leave_out},
    {'6', "a pipe", leave_out},
    {'M', "the continuation of a file in another archive",
     "write one archive, not several volumes"},
    sparse,
};
constexpr OtherType unknown{'?', "of an unknown type", write_again};

OtherType const& other_type(char type) {
  for (auto const& other : other_types)
    if (other.type == type) return other;
  return unknown;
}

struct Compression {
  std::string_view magic;
  char const* program;
  char const* unpack;
};
constexpr Compression compressions[]{
    {"\x1F\x8B", "gzip", "gunzip"},
    {"\x28\xB5\x2F\xFD", "zstd", "unzstd"},
    {std::string_view("\xFD\x37\x7A\x58\x5A\0", 6), "xz", "unxz"},
};

/// Goes through an archive from header to header.
class TarReader {
 public:
  explicit TarReader(fs::path const& path) : file_(path) {}

  std::vector<TarMember> list();

 private:
  Error bad(std::string const& problem, std::string const& expected, std::string const& found,
            std::string const& cure) const {
    return bad_data(file_.path().string(), problem, expected, found, cure);
  }
  std::int64_t left() const { return file_.size() - offset_; }

  std::string_view look(std::int64_t offset, std::int64_t bytes);
  void check_format();
  std::optional<Header> next_header();
  void check_sum(std::string_view header) const;
  void check_end();
  std::int64_t pass_content(std::string const& name, std::int64_t size);
  void read_extension(Header const& header);
  void read_records(Header const& header, std::string_view records);
  void use_record(Header const& header, std::string_view key, std::string_view value);
  void set_name(Header const& header, std::string_view name);
  std::optional<TarMember> take_member(Header header);
  void check_name(std::string const& name) const;
  void check_type(Header const& header) const;
  void check_different(std::vector<TarMember> const& members) const;

  RandomAccessFile file_;
  std::int64_t offset_ = 0;  ///< of what was not read yet
  Extension extension_;
  std::string window_;             ///< a part of the file,
  std::int64_t window_begin_ = 0;  ///< from here
};

/// A part of the file, which must be that long; valid until the next call.
std::string_view TarReader::look(std::int64_t offset, std::int64_t bytes) {
  if (offset < window_begin_ || bytes > std::ssize(window_) - (offset - window_begin_)) {
    auto const size = std::min(std::max(bytes, window_bytes), file_.size() - offset);
    window_.resize(static_cast<std::size_t>(size));
    window_begin_ = offset;
    file_.read(offset, std::as_writable_bytes(std::span(window_)));
  }
  return std::string_view(window_).substr(static_cast<std::size_t>(offset - window_begin_),
                                          static_cast<std::size_t>(bytes));
}

void TarReader::check_format() {
  if (file_.size() == 0) throw bad("the archive is empty", "a tar archive", "0 bytes", copy_again);
  auto const start = look(0, std::min(file_.size(), block));
  for (auto const& [magic, program, unpack] : compressions)
    if (start.starts_with(magic))
      throw bad("the archive is compressed", "a plain tar archive", str("one packed by ", program),
                str("unpack it with ", unpack,
                    " and use the .tar file, in which images can be read in any order"));
}

/// Empty at the end of the archive.
std::optional<Header> TarReader::next_header() {
  if (left() < block)
    throw bad("the archive is cut: it ends without the two blocks of zeros",
              str(2 * block, " bytes of 0"), str(left(), " bytes"), copy_again);
  auto const text = look(offset_, block);
  if (is_zero(text)) {
    check_end();
    return std::nullopt;
  }
  check_sum(text);
  Header header{.name = header_name(text), .type = text[type_byte], .offset = offset_};
  auto const size = parse_number_field(view(text, size_field));
  if (!size && is_read(header.type))
    throw bad(str("the size of ", printable(header.name), " is no number"), "octal digits",
              in_quotes(view(text, size_field)), write_again);
  header.size = size.value_or(0);
  offset_ += block;
  return header;
}

void TarReader::check_sum(std::string_view header) const {
  auto const stated = parse_octal(view(header, checksum_field));
  auto const sum = checksum<unsigned char>(header);
  // Some old programs added bytes up as signed numbers.
  if (stated == sum || stated == checksum<signed char>(header)) return;
  throw bad(offset_ == 0 ? "this is no tar archive, or its first header is damaged"
                         : str("the header at byte ", offset_, " is damaged"),
            str("checksum ", sum), stated ? str(*stated) : in_quotes(view(header, checksum_field)),
            offset_ == 0 ? write_again : copy_again);
}

/// At the first block of zeros: there must be another, and nothing else behind.
void TarReader::check_end() {
  if (left() < 2 * block)
    throw bad("the archive is cut: it ends after one of the two blocks of zeros",
              str(2 * block, " bytes of 0"), str(left(), " bytes"), copy_again);
  auto const end = offset_ + std::min(left(), most_checked_padding);
  for (auto at = offset_; at < end; at += window_bytes) {
    auto const part = look(at, std::min(window_bytes, end - at));
    if (!is_zero(part))
      throw bad("data follow the end of the archive", "only zeros",
                str("other data from byte ",
                    at + static_cast<std::int64_t>(part.find_first_not_of('\0'))),
                "write one archive, instead of putting several one after the other");
  }
}

/// Goes to the next header. Returns the offset of the content.
std::int64_t TarReader::pass_content(std::string const& name, std::int64_t size) {
  if (size > left())
    throw bad(str("the archive is cut in ", printable(name)), str(size, " bytes of it"),
              str(left()), copy_again);
  auto const begin = offset_;
  offset_ += size;
  offset_ += std::min((block - size % block) % block, left());
  return begin;
}

/// Long names of GNU tar ('L'; 'K' for the targets of links), extended headers of pax ('x' for one
/// member, 'g' for all).
void TarReader::read_extension(Header const& header) {
  if (header.size > most_extension_bytes)
    throw bad(str("the extended header at byte ", header.offset, " is too long"),
              str("at most ", most_extension_bytes, " bytes"), str(header.size), write_again);
  auto const begin = pass_content(header.name, header.size);
  auto const content = look(begin, header.size);
  extension_.any = extension_.any || header.type != 'g';
  if (header.type == 'L')
    set_name(header, content.substr(0, content.find_last_not_of('\0') + 1));
  else if (header.type != 'K')
    read_records(header, content);
}

/// Records "LENGTH KEY=VALUE\n", where LENGTH is that of the whole record.
void TarReader::read_records(Header const& header, std::string_view records) {
  while (!records.empty()) {
    auto const key_begin = records.find(' ') + 1;  // 0 if there is none
    auto const length = key_begin == 0 ? 0 : parse_integer(records.substr(0, key_begin - 1));
    bool const fits =
        length && *length > static_cast<std::int64_t>(key_begin) && *length <= std::ssize(records);
    auto const record = records.substr(0, fits ? static_cast<std::size_t>(*length) : 0);
    auto const equals = record.find('=', key_begin);
    if (equals == std::string_view::npos || record.back() != '\n')
      throw bad(str("the extended header at byte ", header.offset, " is damaged"),
                "records \"LENGTH KEY=VALUE\"", in_quotes(records.substr(0, 40)), write_again);
    use_record(header, record.substr(key_begin, equals - key_begin),
               record.substr(equals + 1, record.size() - equals - 2));
    records.remove_prefix(record.size());
  }
}

void TarReader::use_record(Header const& header, std::string_view key, std::string_view value) {
  bool const is_sparse = key.starts_with("GNU.sparse.");
  if (key != "path" && key != "size" && !is_sparse) return;
  if (header.type == 'g')
    throw bad(str("the global header at byte ", header.offset, " is about every member"),
              "no name and no size in it", printable(key), write_again);
  if (is_sparse) {
    extension_.sparse = true;
  } else if (key == "path") {
    set_name(header, value);
  } else {
    auto const size = parse_integer(value);
    if (!size || *size < 0 || extension_.size)
      throw bad(str("the extended header at byte ", header.offset, " has an unusable size"),
                "one size, in bytes", in_quotes(value), write_again);
    extension_.size = size;
  }
}

void TarReader::set_name(Header const& header, std::string_view name) {
  if (extension_.name)
    throw bad(str("the extended header at byte ", header.offset, " names a member again"),
              "one name", in_quotes(name.substr(0, 40)), write_again);
  extension_.name = name;
}

/// Empty if it is a folder.
std::optional<TarMember> TarReader::take_member(Header header) {
  auto const extension = std::exchange(extension_, {});
  if (extension.name) header.name = *extension.name;
  if (extension.size) header.size = *extension.size;
  if (extension.sparse) header.type = sparse.type;
  check_name(header.name);
  check_type(header);
  if (is_folder(header)) {
    if (header.size > 0)
      throw bad(str("the folder ", printable(header.name), " has content"), "0 bytes",
                str(header.size), write_again);
    return std::nullopt;
  }
  auto const offset = pass_content(header.name, header.size);
  return TarMember{std::move(header.name), offset, header.size};
}

void TarReader::check_name(std::string const& name) const {
  std::string_view problem;
  if (name.empty()) problem = "an empty name";
  if (name.size() > longest_name) problem = "a name of more than 4096 bytes";
  if (!is_portable_text(name)) problem = "a name that is not UTF-8 text without NUL";
  if (name.starts_with('/')) problem = "an absolute name";
  if (str('/', name, '/').find("/../") != std::string::npos) problem = "a name with ..";
  if (!problem.empty())
    throw bad(str("a member has ", problem), "a relative path", in_quotes(name.substr(0, 200)),
              name_it);
}

void TarReader::check_type(Header const& header) const {
  if (is_read(header.type)) return;
  auto const& other = other_type(header.type);
  throw bad(str(printable(header.name), " is ", other.description), "only files and folders",
            str("type ", in_quotes(std::string_view(&header.type, 1))), other.cure);
}

void TarReader::check_different(std::vector<TarMember> const& members) const {
  std::unordered_set<std::string_view> names;
  for (auto const& member : members)
    if (!names.insert(member.name).second)
      throw bad(str(printable(member.name), " is in the archive twice"), "different names",
                str("another content at byte ", member.offset), write_again);
}

std::vector<TarMember> TarReader::list() {
  check_format();
  std::vector<TarMember> members;
  while (auto header = next_header()) {
    if (is_extension(header->type))
      read_extension(*header);
    else if (auto member = take_member(std::move(*header)))
      members.push_back(std::move(*member));
  }
  if (extension_.any)
    throw bad("the archive ends after an extended header", "the member that it is about", "none",
              copy_again);
  check_different(members);
  return members;
}

}  // namespace

std::vector<TarMember> list_members(fs::path const& path) {
  return TarReader(path).list();
}

}  // namespace stratagem
