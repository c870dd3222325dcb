#include "model/safetensors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>

#include <ATen/ATen.h>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/error.hpp"
#include "base/files/file.hpp"
#include "base/files/file_kind.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors is little-endian");

constexpr std::uint64_t kLongestHeader = 16
                                         << 20;  ///< of 100,000 tensors; the format allows 100 MB
constexpr int kDeepestHeader = 4;                ///< tensor, its members, their numbers

struct Type {
  char const* name;
  at::ScalarType type;
};
constexpr std::array<Type, 15> kTypes{{{"F64", at::kDouble},
                                       {"F32", at::kFloat},
                                       {"F16", at::kHalf},
                                       {"BF16", at::kBFloat16},
                                       {"F8_E4M3", at::kFloat8_e4m3fn},
                                       {"F8_E5M2", at::kFloat8_e5m2},
                                       {"I64", at::kLong},
                                       {"I32", at::kInt},
                                       {"I16", at::kShort},
                                       {"I8", at::kChar},
                                       {"U64", at::kUInt64},
                                       {"U32", at::kUInt32},
                                       {"U16", at::kUInt16},
                                       {"U8", at::kByte},
                                       {"BOOL", at::kBool}}};

/// The header's description of one tensor.
struct Entry {
  std::string name;
  at::ScalarType type;
  std::vector<std::int64_t> shape;
  std::uint64_t begin, end;  ///< bytes, from the end of the header
};

class Reader {
 public:
  explicit Reader(std::filesystem::path const& path) : path_(path) {
    std::error_code failed;
    bool const is_file = std::filesystem::is_regular_file(path, failed);
    if (is_file) size_ = std::filesystem::file_size(path, failed);
    if (is_file && !failed) file_.open(path, std::ios::binary);
    if (!file_.is_open())
      throw Error(ExitCode::bad_data, str("cannot open weights file ", path.string()),
                  failed    ? failed.message()
                  : is_file ? std::strerror(errno)
                            : "it is not a regular file",
                  "check model.weights");
  }

  void read(std::function<void(std::string const&, at::Tensor const&)> const& visit) {
    for (auto const& entry : parse(header())) {
      auto const tensor = at::empty(entry.shape, entry.type);
      read_into(tensor.data_ptr(), entry.end - entry.begin);
      visit(entry.name, tensor);
    }
  }

 private:
  [[noreturn]] void reject(std::string const& why,
                           std::string const& cure = "fetch or convert the file again") const {
    throw Error(ExitCode::bad_data, str("not a usable safetensors file: ", path_.string()), why,
                cure);
  }
  void demand(bool holds, std::string const& why) const {
    if (!holds) reject(why);
  }
  void read_into(void* target, std::uint64_t bytes) {
    file_.read(static_cast<char*>(target), static_cast<std::streamsize>(bytes));
    demand(static_cast<bool>(file_), "it could not be read to its end");
  }

  /// A header begins behind its length. What else the file is, it may say in its first bytes.
  void check_kind() {
    std::vector<std::byte> start(std::min<std::uint64_t>(size_, telling_bytes));
    read_into(start.data(), start.size());
    file_.seekg(0);
    constexpr std::size_t begin = sizeof(std::uint64_t);
    if (start.size() > begin && start[begin] == std::byte{'{'}) return;
    auto const* const kind = kind_of(start);
    if (kind == nullptr) return;
    using enum FileKind::Content;
    bool const of_torch = kind->content == archive || kind->content == pickle;
    reject(str("its first bytes say that it is ", kind->name),
           of_torch ? str("convert it with PyTorch: safetensors.torch.save_file(torch.load(\"",
                          path_.filename().string(), "\"), \"model.safetensors\")")
                    : "load it in its own program, and save the tensors with safetensors");
  }

  std::string header() {
    check_kind();
    std::uint64_t length = 0;
    demand(size_ >= sizeof length, str("it has ", size_, " bytes, its header's length alone is 8"));
    read_into(&length, sizeof length);
    demand(length <= kLongestHeader, str("its header of ", length, " bytes is over 16 MiB"));
    demand(length <= size_ - sizeof length,
           str("its header of ", length, " bytes ends beyond the file's ", size_, " bytes"));
    std::string text(length, '\0');
    read_into(text.data(), length);
    return text;
  }

  /// In the order of the data.
  std::vector<Entry> parse(std::string const& text) const {
    // Code that walks a value is recursive: a deeply nested one would overflow the stack.
    auto const shallow = [this](int depth, nlohmann::json::parse_event_t, nlohmann::json const&) {
      demand(depth <= kDeepestHeader, "its header has values within values");
      return true;
    };
    auto const header = nlohmann::json::parse(text, shallow, /*allow_exceptions=*/false);
    demand(header.is_object(), "its header is not a JSON object");
    check_metadata(header);
    std::vector<Entry> entries;
    for (auto const& [name, value] : header.items())
      if (name != "__metadata__") entries.push_back(parse_entry(name, value));
    std::ranges::sort(entries, {}, [](Entry const& e) { return std::pair(e.begin, e.end); });
    std::uint64_t position = 0;
    for (auto const& entry : entries) {
      demand(entry.begin == position, str("tensor \"", entry.name, "\" begins at byte ",
                                          entry.begin, " of the data, expected ", position));
      position = entry.end;
    }
    std::uint64_t const held = size_ - sizeof(std::uint64_t) - text.size();
    demand(position == held,
           str("it holds ", held, " bytes of data, its header describes ", position));
    return entries;
  }

  /// Other libraries order the elements of their tensors otherwise.
  void check_metadata(nlohmann::json const& header) const {
    if (!header.contains("__metadata__") || !header["__metadata__"].is_object()) return;
    auto const& metadata = header["__metadata__"];
    demand(!metadata.contains("format") || metadata["format"] == "pt",
           str("its metadata say that it is of format ",
               metadata.value("format", nlohmann::json()).dump(), ", expected \"pt\", PyTorch's"));
  }

  Entry parse_entry(std::string const& name, nlohmann::json const& value) const {
    auto const list = [&](char const* key) -> std::vector<std::uint64_t> {
      std::vector<std::uint64_t> numbers;
      bool usable = value.is_object() && value.contains(key) && value[key].is_array();
      if (usable)
        for (auto const& number : value[key]) {
          usable = usable && number.is_number_unsigned();
          if (usable) numbers.push_back(number.get<std::uint64_t>());
        }
      demand(usable, str("tensor \"", name, "\" has no usable ", key));
      return numbers;
    };
    auto const shape = list("shape");
    auto const offsets = list("data_offsets");
    auto const type = value.contains("dtype") ? value["dtype"] : nlohmann::json();
    auto const known = std::ranges::find_if(kTypes, [&](Type const& t) { return type == t.name; });
    demand(known != kTypes.end(),
           str("tensor \"", name, "\" has type ", type.dump(), ", which is not known"));
    auto const bytes = bytes_of(shape, at::elementSize(known->type));
    demand(offsets.size() == 2 && offsets[0] <= offsets[1] && bytes &&
               offsets[1] - offsets[0] == *bytes,
           str("the data_offsets of tensor \"", name, "\" do not fit its shape"));
    return {name, known->type, {shape.begin(), shape.end()}, offsets[0], offsets[1]};
  }

  /// Empty if it is more than the file can hold. An extent of 0 counts as 1 here, so that no
  /// product overflows.
  std::optional<std::uint64_t> bytes_of(std::vector<std::uint64_t> const& shape,
                                        std::uint64_t element) const {
    std::uint64_t bound = element;
    for (auto const extent : shape) {
      if (extent > size_ / bound) return {};
      bound *= std::max<std::uint64_t>(extent, 1);
    }
    return std::ranges::count(shape, 0U) > 0 ? 0 : bound;
  }

  std::filesystem::path path_;
  std::ifstream file_;
  std::uint64_t size_ = 0;
};

/// A file that gets its name when it is complete.
class Writer {
 public:
  explicit Writer(std::filesystem::path const& path)
      : path_(path),
        temporary_(str(path.string(), ".tmp.", ::getpid())),
        descriptor_(create(temporary_.c_str())) {
    require_regular_or_none(path);
    if (descriptor_ < 0) fail();
  }
  ~Writer() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!published_) ::unlink(temporary_.c_str());
  }
  Writer(Writer const&) = delete;
  Writer& operator=(Writer const&) = delete;

  void write(void const* data, std::size_t bytes) {
    auto const* next = static_cast<char const*>(data);
    while (bytes > 0) {
      auto const written = ::write(descriptor_, next, bytes);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail();
      next += written;
      bytes -= static_cast<std::size_t>(written);
    }
  }

  void publish() {
    if (::fsync(descriptor_) != 0) fail();
    if (::close(std::exchange(descriptor_, -1)) != 0) fail();
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail();
    published_ = true;
  }

 private:
  /// Never written through a link; replaces what a killed process with the same id left.
  static int create(char const* path) {
    ::unlink(path);
    return ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  }
  [[noreturn]] void fail() const {
    throw Error(ExitCode::io, str("cannot write ", path_.string()), std::strerror(errno));
  }

  std::filesystem::path path_;
  std::string temporary_;
  int descriptor_;
  bool published_ = false;
};

char const* type_name(at::Tensor const& tensor) {
  auto const found = std::ranges::find(kTypes, tensor.scalar_type(), &Type::type);
  if (found == kTypes.end())
    throw Error(ExitCode::unexpected,
                str("safetensors cannot hold type ", at::toString(tensor.scalar_type())));
  return found->name;
}

}  // namespace

TensorMap read_safetensors(std::filesystem::path const& path) {
  TensorMap tensors;
  read_safetensors(path, [&tensors](std::string const& name, at::Tensor const& tensor) {
    tensors.emplace(name, tensor);
  });
  return tensors;
}

void read_safetensors(
    std::filesystem::path const& path,
    std::function<void(std::string const& name, at::Tensor const&)> const& visit) {
  Reader(path).read(visit);
}

void write_safetensors(std::filesystem::path const& path,
                       std::vector<std::pair<std::string, at::Tensor>> const& tensors,
                       std::map<std::string, std::string> const& metadata) {
  // Wide types first, so that every tensor is aligned when a reader maps the file.
  std::vector<std::size_t> order(tensors.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](std::size_t i) { return tensors[i].second.element_size(); });
  std::vector<std::array<std::size_t, 2>> offsets(tensors.size());
  std::size_t position = 0;
  for (auto const i : order) {
    auto const begin = position;
    position += tensors[i].second.nbytes();
    offsets[i] = {begin, position};
  }
  auto header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    auto const& [name, tensor] = tensors[i];
    header[name] = {{"dtype", type_name(tensor)},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", offsets[i]}};
  }
  auto text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::uint64_t const length = text.size();

  Writer writer(path);
  writer.write(&length, sizeof length);
  writer.write(text.data(), text.size());
  for (auto const i : order) {
    auto const host = tensors[i].second.detach().cpu().contiguous();
    writer.write(host.data_ptr(), host.nbytes());
  }
  writer.publish();
}

}  // namespace stratagem
