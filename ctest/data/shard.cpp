#include "data/tar/shard.hpp"

#include "data/files.hpp"
#include "data/tar_files.hpp"

namespace stratagem {
namespace {

using namespace test;

/// Members "NAME=CONTENT"; without a "=", the content is the name.
std::string archive_of(std::vector<std::string> const& members) {
  std::string content;
  for (auto const& member : members) {
    auto const equals = member.find('=');
    auto const name = member.substr(0, equals);
    content += tar_member(name, equals == std::string::npos ? name : member.substr(equals + 1));
  }
  return content + tar_end;
}

/// A shard that is written anew for every call.
class ShardFile {
 public:
  /// "KEY LABEL IMAGE" of every sample; IMAGE is what stands at its place.
  std::vector<std::string> samples(std::vector<std::string> const& members) const {
    auto const content = archive_of(members);
    write_file(path(), content);
    std::vector<std::string> found;
    for (auto const& [key, offset, size, label] : list_samples(path()))
      found.push_back(
          key + " " + std::to_string(label) + " " +
          content.substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(size)));
    return found;
  }
  void refuses(std::vector<std::string> const& members, std::string const& fragment) const {
    expect_bad_data([&] { samples(members); }, path().string() + ": " + fragment);
  }
  std::filesystem::path path() const { return folder_ / "train-0.tar"; }

 private:
  Scratch folder_;
};

using Samples = std::vector<std::string>;

TEST(Shard, ListsSamplesInTheirOrder) {
  EXPECT_EQ(ShardFile().samples({"b.cls=3", "b.jpg", "a.jpeg", "a.cls=0", "c.cls=65535", "c.png",
                                 "B.JPG", "B.Cls=1"}),
            (Samples{"b 3 b.jpg", "a 0 a.jpeg", "c 65535 c.png", "B 1 B.JPG"}));
}

TEST(Shard, AKeyIsThePathUpToTheFirstDotOfTheFilesName) {
  EXPECT_EQ(ShardFile().samples({"v1.0/a.cls=1", "v1.0/a.jpg", "v1.0/b.cls=2", "v1.0/b.jpg",
                                 "./b.cls=3", "./b.jpg"}),
            (Samples{"v1.0/a 1 v1.0/a.jpg", "v1.0/b 2 v1.0/b.jpg", "./b 3 ./b.jpg"}));
}

TEST(Shard, IgnoresOtherFiles) {
  EXPECT_EQ(ShardFile().samples({"LICENSE", "about.txt", "a.cls=1", "a.jpg", "a.json", "a.seg.png",
                                 "a.seg.cls=x", "b.txt", "._c.cls", "c.cls=2", "._c.jpg", ".jpg",
                                 "sub/.cls", "c.jpg", "jpg"}),
            (Samples{"a 1 a.jpg", "c 2 c.jpg"}));
}

TEST(Shard, ReadsLabelsWithSpaceAroundThem) {
  EXPECT_EQ(ShardFile().samples({"a.cls= \t7\r\n", "a.jpg", "b.cls=0007", "b.jpg",
                                 "c.cls=" + std::string(19, ' ') + "7", "c.jpg"}),
            (Samples{"a 7 a.jpg", "b 7 b.jpg", "c 7 c.jpg"}));
}

TEST(Shard, RefusesLabelsThatAreNoClass) {
  ShardFile shard;
  for (std::string const label :
       {"", "\n", "-1", "+1", "1.5", "1 2", "cat", "0x1", "65536", "99999999999999999999"})
    shard.refuses(
        {"a.cls=" + label, "a.jpg"},
        "the label a.cls is no class (expected an integer of 0 to 65535 as text, found \"" +
            (label == "\n" ? "\\x0a" : label) +
            "\"); number the classes from 0, and write the number into the file");
  shard.refuses(
      {"a.cls=7" + std::string(20, ' '), "a.jpg"},
      "the label a.cls is no class (expected an integer of 0 to 65535 as text, found \"7" +
          std::string(19, ' ') + "\"...)");
  shard.refuses({"a.cls=" + std::string("7\0", 2), "a.jpg"}, "the label a.cls is no class");
}

TEST(Shard, RefusesIncompleteSamples) {
  ShardFile shard;
  for (std::vector<std::string> const& rest : {Samples{}, Samples{"b.cls=1", "b.jpg"}}) {
    auto before_rest = [&](std::vector<std::string> members) {
      members.insert(members.end(), rest.begin(), rest.end());
      return members;
    };
    shard.refuses(before_rest({"d/a.jpg", "d/a.json"}),
                  "the image d/a.jpg has no label (expected d/a.cls next to it, found none); add "
                  "its class as text, and write the shard again with tar --sort=name");
    shard.refuses(before_rest({"d/a.json", "d/a.cls=1"}),
                  "the label d/a.cls has no image (expected d/a.jpg, .jpeg or .png next to it, "
                  "found none)");
    shard.refuses(before_rest({"d/a.jpg=", "d/a.cls=1"}), "the image d/a.jpg is empty");
  }
}

TEST(Shard, RefusesTwoImagesOrLabelsOfAKey) {
  ShardFile shard;
  shard.refuses({"a.jpg", "a.cls=1", "a.png"},
                "the key a has two images (expected one besides a.jpg, found a.png)");
  shard.refuses({"a.jpg", "a.JPG", "a.cls=1"}, "the key a has two images");
  shard.refuses({"a.cls=1", "a.CLS=1", "a.jpg"},
                "the key a has two labels (expected one besides a.cls, found a.CLS)");
}

TEST(Shard, RefusesAKeyThatAppearsAgain) {
  ShardFile shard;
  shard.refuses({"a.jpg", "a.cls=1", "b.jpg", "b.cls=2", "a.txt"},
                "the files of the key a do not stand together (expected one next to the other, "
                "found a.txt after other keys); write the shard again with tar --sort=name");
  shard.refuses({"a.txt", "b.jpg", "b.cls=2", "a.jpg", "a.cls=1"},
                "the files of the key a do not stand together");
}

TEST(Shard, RefusesAShardWithoutImages) {
  ShardFile shard;
  shard.refuses({}, "the shard holds no images");
  shard.refuses({"README", "a.txt", "a.seg.png"}, "the shard holds no images");
}

TEST(Shard, RefusesWhatIsNoArchive) {
  ShardFile shard;
  shard.refuses({"a.cls=1", "a.jpg", "a.cls=1"}, "a.cls is in the archive twice");
  write_gzip(shard.path(), archive_of({"a.cls=1", "a.jpg"}));
  expect_bad_data([&] { list_samples(shard.path()); }, "the archive is compressed");
}

TEST(Shard, KeepsControlCharactersOutOfMessages) {
  ShardFile().refuses({"a\x1B[2J.jpg"},
                      "the image a\\x1b[2J.jpg has no label (expected a\\x1b[2J.cls next to it");
}

}  // namespace
}  // namespace stratagem
