#include "data/tar/tar_archive.hpp"

#include "data/files.hpp"
#include "data/tar_files.hpp"

namespace stratagem {
namespace {

using namespace test;

std::string const long_name(150, 'n');
std::string const longer_name = std::string(200, 'd') + "/" + std::string(200, 'n');

/// An archive that is written anew for every call.
class Archive {
 public:
  std::vector<TarMember> list(std::string const& content) const {
    write_file(path(), content);
    return list_members(path());
  }
  /// The names of the members, and their contents at the places where they are listed.
  std::vector<std::string> contents(std::string const& content) const {
    std::vector<std::string> found;
    for (auto const& [name, offset, size] : list(content))
      found.push_back(
          name + ":" +
          content.substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(size)));
    return found;
  }
  void refuses(std::string const& content, std::string const& fragment) const {
    expect_bad_data([&] { list(content); }, fragment);
  }
  std::filesystem::path path() const { return folder_ / "images.tar"; }

 private:
  Scratch folder_;
};

using Contents = std::vector<std::string>;

TEST(TarArchive, ListsFilesInTheirOrderAndSkipsFolders) {
  auto const exactly_two_blocks = std::string(1024, 'x');
  EXPECT_EQ(Archive().contents(tar_member("b/", "", '5') + tar_member("b/2.jpg", "two") +
                               tar_member("a.txt", "") + tar_member("c", exactly_two_blocks) +
                               tar_member("B", "one") + tar_end),
            (Contents{"b/2.jpg:two", "a.txt:", "c:" + exactly_two_blocks, "B:one"}));
  EXPECT_EQ(Archive().contents(tar_end), Contents{});
}

TEST(TarArchive, ReadsTheHeadersOfV7) {
  auto v7 = [](std::string const& name, std::string const& size) {
    return TarHeader{.name = name, .type = '\0', .size = size, .magic = "", .prefix = "no prefix"}
        .text();
  };
  EXPECT_EQ(Archive().contents(v7("folder/", octal(0, 11)) + v7("folder/a", "          3 ") +
                               padded("abc") + tar_end),
            Contents{"folder/a:abc"});
}

TEST(TarArchive, ReadsTheHeadersOfUstar) {
  std::string const name(100, 'n');
  std::string const prefix(155, 'p');
  auto const size = octal(3, 12);  // all of the field
  EXPECT_EQ(Archive().contents(TarHeader{.name = name, .size = size, .prefix = prefix}.text() +
                               padded("abc") + tar_end),
            Contents{prefix + "/" + name + ":abc"});
}

TEST(TarArchive, ReadsTheHeadersOfGnuTar) {
  std::string const magic("ustar  \0", 8);
  // Old GNU tar keeps times where ustar has the prefix.
  auto const times = TarHeader{.name = "a", .magic = magic, .prefix = octal(0, 11)}.text();
  auto const big_endian = std::string("\x80", 1) + std::string(9, '\0') + "\x01\x03";
  auto const binary = TarHeader{.name = "b", .size = big_endian, .magic = magic}.text();
  EXPECT_EQ(Archive().contents(times + binary + padded(std::string(259, 'x')) + tar_end),
            (Contents{"a:", "b:" + std::string(259, 'x')}));
  for (auto const& name : {long_name, longer_name})
    EXPECT_EQ(Archive().contents(tar_member("././@LongLink", name + '\0', 'L') +
                                 tar_member(name, "abc") + tar_member("b", "def") + tar_end),
              (Contents{name + ":abc", "b:def"}));
}

TEST(TarArchive, ReadsTheHeadersOfPax) {
  auto const others = pax_record("mtime", "1700000000.25") + pax_record("comment", "a=b\nc");
  for (auto const& name : {long_name, longer_name, std::string("\xC3\xBC/\xE2\x82\xAC")})
    EXPECT_EQ(
        Archive().contents(pax_header(pax_record("comment", "of a commit"), 'g') +
                           pax_header(others + pax_record("path", name) + pax_record("size", "3")) +
                           TarHeader{.name = "short"}.text() + padded("abc") +
                           tar_member("b", "def") + tar_end),
        (Contents{name + ":abc", "b:def"}));
}

/// Beyond what 32 bits, and eleven octal digits, can say. Takes no space on most file systems.
TEST(TarArchive, ReadsContentOfManyGigabytes) {
  constexpr std::int64_t size = 9LL << 30, headers = 3 * 512;
  Archive archive;
  write_file(archive.path(),
             pax_header(pax_record("size", std::to_string(size))) + TarHeader{.name = "a"}.text());
  std::filesystem::resize_file(archive.path(), headers + size);
  std::ofstream(archive.path(), std::ios::binary | std::ios::app)
      << tar_member("b", "abc") << tar_end;
  auto const members = list_members(archive.path());
  ASSERT_EQ(members.size(), 2);
  EXPECT_EQ(members[0].size, size);
  EXPECT_EQ(members[1].offset, headers + size + 512);
}

TEST(TarArchive, AcceptsSumsOfSignedBytes) {
  auto header = TarHeader{.name = "\xC3\xBC"}.text();
  auto const as_unsigned = std::stoul(header.substr(148, 6), nullptr, 8);
  header.replace(148, 6, octal(as_unsigned - 2 * 256, 6));  // two bytes above 127
  EXPECT_EQ(Archive().contents(header + tar_end), Contents{"\xC3\xBC:"});
  header.replace(148, 6, octal(as_unsigned - 256, 6));
  Archive().refuses(header + tar_end, "its first header is damaged (expected checksum " +
                                          std::to_string(as_unsigned) + ", found " +
                                          std::to_string(as_unsigned - 256) + ")");
}

TEST(TarArchive, NoticesAnyDamageToAHeader) {
  Archive archive;
  auto const good = tar_member("a", "abc") + tar_member("b", "def") + tar_end;
  for (std::size_t at = 1024; at < 1536; ++at) {
    auto damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x04);
    // Only what ends the checksum's digits is not part of any sum.
    if (at == 1024 + 154 || at == 1024 + 155) continue;
    archive.refuses(damaged, "the header at byte 1024 is damaged");
  }
  auto without_sum = good;
  without_sum.replace(1024 + 148, 8, 8, ' ');
  archive.refuses(without_sum, "found \"        \"");
}

TEST(TarArchive, NoticesEveryCut) {
  Archive archive;
  auto const whole = tar_member("a", std::string(700, 'x')) + tar_end;
  auto const content_end = std::size_t{512} + 700;
  for (std::size_t length = 0; length < whole.size(); ++length)
    archive.refuses(whole.substr(0, length), length == 0            ? "the archive is empty"
                                             : length < 512         ? "cut: it ends without the two"
                                             : length < content_end ? "the archive is cut in a ("
                                             : length < 1536 + 512  ? "cut: it ends without the two"
                                                                    : "one of the two blocks");
  archive.refuses(whole.substr(0, 1000), "expected 700 bytes of it, found 488");
  archive.refuses(whole.substr(0, 1536), "expected 1024 bytes of 0, found 0 bytes");
}

TEST(TarArchive, AcceptsOnlyZerosAfterTheEnd) {
  Archive archive;
  auto const good = tar_member("a", "abc") + tar_end;
  EXPECT_EQ(archive.list(good + std::string(9000, '\0')).size(), 1);
  archive.refuses(good + std::string(5000, '\0') + "x",
                  "data follow the end of the archive (expected only zeros, found other data from "
                  "byte 7048); write one archive");
  archive.refuses(good + good, "from byte 2048)");
  archive.refuses(tar_member("a", "") + std::string(512, '\0') + tar_member("b", "") + tar_end,
                  "from byte 1024)");
}

TEST(TarArchive, RefusesMembersThatAreNoFiles) {
  Archive archive;
  for (auto const& [type, fragment] : std::vector<std::pair<char, std::string>>{
           {'1',
            "sub/x is a hard link (expected only files and folders, found type \"1\"); write "
            "the archive with tar --dereference --hard-dereference"},
           {'2', "sub/x is a symbolic link"},
           {'3', "sub/x is a character device"},
           {'4', "sub/x is a block device"},
           {'6', "sub/x is a pipe"},
           {'M', "sub/x is the continuation of a file in another archive"},
           {'S', "sub/x is a sparse file"},
           {'Z', "sub/x is of an unknown type (expected only files and folders, found type \"Z\""},
           {'\x1B', "found type \"\\x1b\""}})
    archive.refuses(tar_member("sub/x", "", type) + tar_end, fragment);
  archive.refuses(pax_header(pax_record("GNU.sparse.major", "1")) + tar_member("x", "") + tar_end,
                  "x is a sparse file");
  // Volume labels have no size.
  archive.refuses(TarHeader{.name = "label", .type = 'V', .size = ""}.text() + tar_end,
                  "label is of an unknown type");
  archive.refuses(
      tar_member("././@LongLink", long_name + '\0', 'K') + tar_member("x", "", '2') + tar_end,
      "x is a symbolic link");
  archive.refuses(tar_member("sub", "abc", '5') + tar_end, "the folder sub has content");
  archive.refuses(tar_member("sub/", "abc") + tar_end, "the folder sub/ has content");
}

TEST(TarArchive, RefusesUnusableNames) {
  Archive archive;
  auto named = [](std::string const& name) {
    return pax_header(pax_record("path", name)) + tar_member("x", "") + tar_end;
  };
  EXPECT_EQ(archive.list(named("a..b/..c/d..")).size(), 1);
  for (auto const& [name, fragment] : std::vector<std::pair<std::string, std::string>>{
           {"", "an empty name"},
           {"/a", "an absolute name (expected a relative path, found \"/a\")"},
           {"..", "a name with .."},
           {"a/../b", "a name with .."},
           {"a/..", "a name with .."},
           {"../b", "a name with .."},
           {std::string("a\0b", 3),
            "a name that is not UTF-8 text without NUL (expected a relative path, found "
            "\"a\\x00b\")"},
           {"a\xFF",
            "a name that is not UTF-8 text without NUL (expected a relative path, found "
            "\"a\\xff\")"},
           {std::string(4097, 'n'), "a name of more than 4096 bytes"}})
    archive.refuses(named(name), "a member has " + fragment);
  archive.refuses(tar_member("", "") + tar_end, "an empty name");
  archive.refuses(tar_member("/x/", "", '5') + tar_end, "an absolute name");
  archive.refuses(
      tar_member("././@LongLink", std::string("a\0b", 4), 'L') + tar_member("x", "") + tar_end,
      "found \"a\\x00b\"");
}

TEST(TarArchive, RefusesANameThatIsThereTwice) {
  Archive().refuses(tar_member("a", "1") + tar_member("b", "") + tar_member("a", "2") + tar_end,
                    "a is in the archive twice (expected different names, found another content at "
                    "byte 2048)");
}

TEST(TarArchive, RefusesUnusableSizes) {
  Archive archive;
  auto sized = [](std::string const& size) {
    return TarHeader{.name = "a", .size = size}.text() + tar_end;
  };
  archive.refuses(sized("0000000008"),
                  "the size of a is no number (expected octal digits, found "
                  "\"0000000008");
  archive.refuses(sized(""), "the size of a is no number");
  archive.refuses(sized("-1"), "the size of a is no number");
  archive.refuses(sized("1 1"), "the size of a is no number");
  archive.refuses(sized(std::string(12, '\xFF')), "the size of a is no number");
  archive.refuses(sized("777777777777"), "expected 68719476735 bytes of it, found 1024");
  archive.refuses(sized("\x80" + std::string(11, '\xFF')),
                  "expected 9223372036854775807 bytes of it, found 1024");
  archive.refuses(sized("\x80" + std::string(3, '\0') + std::string(8, '\xFF')),
                  "expected 9223372036854775807 bytes of it, found 1024");
}

TEST(TarArchive, RefusesUnusableExtendedHeaders) {
  Archive archive;
  auto const file = tar_member("x", "") + tar_end;
  auto pax = [&](std::string const& records) { return pax_header(records) + file; };
  for (auto const* records : {"path=a\n", "x path=a\n", "-1 path=a\n", "0 path=a\n", "2 path=a\n",
                              "8 path=a\n", "11 path=a\n", "10 path a\n", "10 path=ab\n",
                              " 9 path=a\n", "10 path=a\n\n\n", "9", "9 note=ab10 note=c\n"})
    archive.refuses(pax(records), "the extended header at byte 0 is damaged (expected records");
  for (auto const* size : {"", "-1", "0x1", "1.5", "9223372036854775808"})
    archive.refuses(pax(pax_record("size", size)),
                    "the extended header at byte 0 has an unusable size (expected one size, in "
                    "bytes, found \"" +
                        std::string(size) + "\")");
  archive.refuses(pax(pax_record("size", "9223372036854775807")),
                  "cut in x (expected 9223372036854775807 bytes of it, found 1024)");
  archive.refuses(pax(pax_record("size", "0") + pax_record("size", "0")), "an unusable size");
  archive.refuses(pax(pax_record("path", "a") + pax_record("path", "b")),
                  "names a member again (expected one name, found \"b\")");
  archive.refuses(tar_member("L", "a", 'L') + pax(pax_record("path", "b")), "names a member again");
  for (auto const* key : {"path", "size", "GNU.sparse.size"})
    archive.refuses(pax_header(pax_record(key, "1"), 'g') + file,
                    "the global header at byte 0 is about every member (expected no name and no "
                    "size in it, found " +
                        std::string(key));
}

TEST(TarArchive, RefusesExtendedHeadersThatAreTooLongOrAlone) {
  Archive archive;
  auto const file = tar_member("x", "") + tar_end;
  constexpr std::size_t most = 64 << 10;
  EXPECT_EQ(archive.list(tar_member("x", std::string("1\n"), 'K') + file).size(), 1);
  EXPECT_EQ(archive.list(tar_member("K", std::string(most, 'k'), 'K') + file).size(), 1);
  archive.refuses(tar_member("K", std::string(most + 1, 'k'), 'K') + file,
                  "the extended header at byte 0 is too long (expected at most 65536 bytes, found "
                  "65537)");
  archive.refuses(TarHeader{.name = "pax", .type = 'x', .size = octal(60000, 11)}.text() + file,
                  "cut in pax (expected 60000 bytes of it");
  for (char const type : {'x', 'L', 'K'})
    archive.refuses(tar_member("alone", "", type) + tar_end,
                    "the archive ends after an extended header");
}

TEST(TarArchive, RefusesCompressedArchivesAndOtherFiles) {
  Archive archive;
  write_gzip(archive.path(), tar_member("a", "abc") + tar_end);
  expect_bad_data([&] { list_members(archive.path()); },
                  archive.path().string() +
                      ": the archive is compressed (expected a plain tar "
                      "archive, found one packed by gzip); unpack it with gunzip");
  archive.refuses("\x28\xB5\x2F\xFD and more", "packed by zstd); unpack it with unzstd");
  archive.refuses(std::string("\xFD\x37\x7A\x58\x5A\0", 6), "packed by xz); unpack it with unxz");
  archive.refuses(std::string(600, 'x'), "this is no tar archive");
  expect_bad_data([&] { list_members(archive.path().parent_path()); }, "not a regular file");
  expect_bad_data([&] { list_members(archive.path().string() + "x"); }, "cannot open");
}

}  // namespace
}  // namespace stratagem
