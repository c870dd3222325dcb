#include "base/files/file.hpp"
#include "base/random.hpp"
#include "h5/sample.hpp"
#include "support/child.hpp"

namespace stratagem::h5 {
namespace {

/// A damaged file either reads (the damage may lie in unused space or in a value) or is an Error.
class Damage : public SampleTest {
 protected:
  void SetUp() override {
    write_sample(path_, FileWriter::Mode::streaming, 300);
    intact_ = read_text(path_, ExitCode::io);
  }

  /// In a process of its own: HDF5 itself may crash or run away.
  int outcome_of(std::string const& content) const {
    replace_file(path_, content);
    test::Child child([&] {
      ::alarm(20);
      try {
        FileReader const file(path_);
        file.attribute("/", "title");
        file.read_table(sample());
        return 0;
      } catch (Error const& error) {
        return to_int(error.code());
      }
    });
    return child.wait();
  }

  static bool is_refusal(int outcome) {
    return outcome == to_int(ExitCode::io) || outcome == to_int(ExitCode::bad_data);
  }

  std::filesystem::path const path_ = scratch_ / "x.h5";
  std::string intact_;
};

TEST_F(Damage, TruncatedAnywhereIsRefused) {
  ASSERT_EQ(outcome_of(intact_), 0);
  for (std::size_t length = 0; length < intact_.size(); length += 1 + intact_.size() / 150) {
    auto const outcome = outcome_of(intact_.substr(0, length));
    EXPECT_TRUE(is_refusal(outcome))
        << "first " << length << " of " << intact_.size() << " bytes: " << outcome;
  }
}

TEST_F(Damage, FlippedBytesNeverCrash) {
  CounterRandom const random(1, "damage");
  int refused = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    auto const at = random.word64(i) % intact_.size();
    auto damaged = intact_;
    damaged[at] = static_cast<char>(damaged[at] ^ static_cast<char>(1 + random.word(i, 1) % 255));
    auto const outcome = outcome_of(damaged);
    EXPECT_TRUE(outcome == 0 || is_refusal(outcome)) << "byte " << at << ": " << outcome;
    refused += is_refusal(outcome) ? 1 : 0;
  }
  EXPECT_GT(refused, 0);
}

TEST_F(Damage, ForeignFilesAreRefused) {
  for (auto const* content : {"", "text\n", "\x89HDF\r\n\x1a\n"})
    EXPECT_TRUE(is_refusal(outcome_of(content))) << content;
}

}  // namespace
}  // namespace stratagem::h5
