#include "model/safetensors.hpp"

#include <cstring>
#include <fstream>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/files/file.hpp"
#include "base/text.hpp"

namespace stratagem {
namespace {

/// A path of this test alone, removed afterwards.
class Scratch {
 public:
  Scratch()
      : path_(std::filesystem::temp_directory_path() /
              str("stratagem-", ::getpid(), ".safetensors")) {}
  ~Scratch() { std::filesystem::remove(path_); }
  Scratch(Scratch const&) = delete;
  Scratch& operator=(Scratch const&) = delete;
  std::filesystem::path const& path() const { return path_; }

  void fill(std::string const& content) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << content;
  }
  /// A file with this header and `bytes` zeros.
  void fill(std::string const& header, std::size_t bytes) const {
    std::uint64_t const length = header.size();
    std::string content(sizeof length, '\0');
    std::memcpy(content.data(), &length, sizeof length);
    fill(content + header + std::string(bytes, '\0'));
  }
  std::string refusal() const {
    try {
      read_safetensors(path_);
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_data);
      return error.what();
    }
    return "accepted";
  }

 private:
  std::filesystem::path path_;
};

std::vector<std::pair<std::string, at::Tensor>> samples() {
  return {{"weight", at::randn({2, 3})},
          {"half", at::randn({3}).to(at::kHalf)},
          {"brain", at::randn({1, 1, 3}).to(at::kBFloat16)},
          {"double", at::randn({2}, at::kDouble)},
          {"count", at::full({}, 1L << 40, at::kLong)},
          {"none", at::empty({0, 4})}};
}

TEST(Safetensors, ReadsWhatItWrote) {
  Scratch const file;
  auto const written = samples();
  write_safetensors(file.path(), written);
  auto const read = read_safetensors(file.path());
  EXPECT_EQ(read.size(), written.size());
  for (auto const& [name, tensor] : written) {
    ASSERT_TRUE(read.contains(name));
    EXPECT_EQ(read.at(name).scalar_type(), tensor.scalar_type());
    EXPECT_TRUE(at::equal(read.at(name), tensor)) << name;
  }
}

TEST(Safetensors, WritesTheOrderOfElementsNotOfMemory) {
  Scratch const file;
  auto const tensor = at::randn({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  write_safetensors(file.path(), {{"x", tensor}});
  EXPECT_TRUE(at::equal(read_safetensors(file.path()).at("x"), tensor));
}

TEST(Safetensors, RefusesEveryTruncationAndAnExtraByte) {
  Scratch const file;
  write_safetensors(file.path(), samples());
  auto const content = read_text(file.path(), ExitCode::io);
  for (std::size_t length = 0; length < content.size(); ++length) {
    file.fill(content.substr(0, length));
    EXPECT_NE(file.refusal(), "accepted") << length << " of " << content.size();
  }
  file.fill(content + '\0');
  EXPECT_NE(file.refusal(), "accepted");
}

TEST(Safetensors, SaysWhatIsWrong) {
  struct Case {
    char const* header;
    std::size_t bytes;
    char const* message;
  };
  Scratch const file;
  Case const cases[] = {
      {"[]", 0, "not a JSON object"},
      {"{", 0, "not a JSON object"},
      {R"({"a":1})", 0, "\"a\" has no usable shape"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "no usable shape"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,"4"]}})", 4, "no usable data_offsets"},
      {R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4, "type null"},
      {R"({"a":{"dtype":"X8","shape":[4],"data_offsets":[0,4]}})", 4, "type \"X8\""},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "do not fit"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "do not fit"},
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
       "do not fit"},
      {R"({"a":{"dtype":"F32","shape":[0,9000000000,9000000000],"data_offsets":[0,0]}})", 0,
       "do not fit"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "expected 0"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
                "b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
       6, "\"b\" begins at byte 2"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 8, "holds 8 bytes"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 0, "holds 0 bytes"},
  };
  for (auto const& [header, bytes, message] : cases) {
    file.fill(header, bytes);
    EXPECT_NE(file.refusal().find(message), std::string::npos) << header << "\n" << file.refusal();
  }
  file.fill(std::string(8, '\xff'));
  EXPECT_NE(file.refusal().find("16 MiB"), std::string::npos);
}

TEST(Safetensors, ADeepHeaderIsRefusedBeforeItIsWalked) {
  Scratch const file;
  auto const nested = [](std::string const& open, std::string const& close) {
    std::string text;
    for (int i = 0; i < 1'000'000; ++i) text += open;
    for (int i = 0; i < 1'000'000; ++i) text += close;
    return text;
  };
  file.fill(R"({"a":{"dtype":)" + nested("[", "]") + R"(,"shape":[1],"data_offsets":[0,4]}})", 4);
  EXPECT_NE(file.refusal().find("values within values"), std::string::npos);
  file.fill(nested("[", ""), 0);
  EXPECT_NE(file.refusal().find("values within values"), std::string::npos);
  file.fill(nested(R"({"a":)", "}"), 0);
  EXPECT_NE(file.refusal().find("values within values"), std::string::npos);
}

TEST(Safetensors, SkipsMetadata) {
  Scratch const file;
  file.fill(
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      4);
  EXPECT_EQ(read_safetensors(file.path()).size(), 1U);
}

TEST(Safetensors, MissingFileIsBadDataAndUnwritableFolderIsIo) {
  EXPECT_THROW(read_safetensors("/nonexistent/a.safetensors"), Error);
  try {
    write_safetensors("/nonexistent/a.safetensors", samples());
    FAIL();
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ExitCode::io);
  }
}

}  // namespace
}  // namespace stratagem
