#include "config/document.hpp"

#include <algorithm>
#include <map>
#include <sstream>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "base/text.hpp"
#include "config/text_form.hpp"

namespace stratagem {
namespace {

constexpr std::size_t most_bytes = 1 << 20;

Place place_of(std::string const& file, YAML::Mark const& mark) {
  return place_in_file(file, std::max(mark.line, 0) + 1, std::max(mark.column, 0) + 1);
}

/// Follows the parser's events. Inside a part that was refused it only counts the nesting.
class Collector final : public YAML::EventHandler {
 public:
  Collector(std::string const& file, Problems& problems) : file_(file), problems_(problems) {}

  Document take() { return std::move(document_); }

  void OnDocumentStart(YAML::Mark const& mark) override {
    if (++documents_ > 1) problems_.add(place(mark), "", "a second document; there must be one");
  }
  void OnDocumentEnd() override {}

  void OnNull(YAML::Mark const& mark, YAML::anchor_t anchor) override {
    // The mark of a value that is not there is that of the next token.
    scalar(expects_value() ? key_.place : place(mark), "?", anchor, {{}, false, true});
  }
  void OnScalar(YAML::Mark const& mark, std::string const& tag, YAML::anchor_t anchor,
                std::string const& value) override {
    scalar(place(mark), tag, anchor, {value, tag == "!", false});
  }
  void OnAlias(YAML::Mark const& mark, YAML::anchor_t) override {
    if (ignored()) return;
    refuse(mark, "an alias; write the value itself");
    item_done();
  }

  void OnSequenceStart(YAML::Mark const& mark, std::string const&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    if (!ignored()) refuse(mark, "a list; one value is expected");
    ++refused_;
  }
  void OnSequenceEnd() override { leave_refused(); }

  void OnMapStart(YAML::Mark const& mark, std::string const& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    if (ignored()) {
      ++refused_;
    } else if (level_ == 2 || expects_key()) {
      refuse(mark, "a map; one value is expected");
      ++refused_;
    } else {
      check_plain(place(mark), tag, anchor);
      enter_map();
    }
  }
  void OnMapEnd() override {
    if (refused_ > 0) return leave_refused();
    if (ignored()) return;
    --level_;
    section_.clear();
    item_done();
  }

 private:
  static constexpr char const* not_a_map = "the file must be a map of sections";

  Place place(YAML::Mark const& mark) const { return place_of(file_, mark); }
  bool ignored() const { return refused_ > 0 || documents_ > 1; }
  bool expects_value() const { return !key_.name.empty(); }
  bool expects_key() const { return level_ > 0 && key_.name.empty(); }
  void item_done() { key_ = {}; }
  std::string path() const { return section_.empty() ? key_.name : section_ + '.' + key_.name; }

  /// Something other than a scalar. In place of a key, what follows has no meaning.
  void refuse(YAML::Mark const& mark, char const* message) {
    if (expects_key()) throw YAML::ParserException(mark, "a key must be a word");
    problems_.add(place(mark), path(), level_ == 0 ? not_a_map : message);
  }
  void leave_refused() {
    if (refused_ > 0 && --refused_ == 0) item_done();
  }

  void check_plain(Place const& at, std::string const& tag, YAML::anchor_t anchor) {
    if (!tag.empty() && tag != "?" && tag != "!") problems_.add(at, path(), "a tag; leave it out");
    if (anchor != YAML::NullAnchor) problems_.add(at, path(), "an anchor; leave it out");
  }

  void scalar(Place const& at, std::string const& tag, YAML::anchor_t anchor, Scalar value) {
    if (ignored()) return;
    check_plain(at, tag, anchor);
    if (level_ == 0) {
      if (!value.null) problems_.add(at, "", not_a_map);
    } else if (expects_value()) {
      document_.entries.push_back({section_, key_.name, std::move(value), key_.place, at});
      item_done();
    } else {
      key(at, value);
    }
  }

  void key(Place const& at, Scalar const& name) {
    key_ = {shown_key(name.text), at};
    auto const [first, is_new] = first_places_.emplace(path(), at);
    if (!is_new)
      problems_.add(at, path(), str("duplicate key, first given in line ", first->second.line));
  }

  void enter_map() {
    if (++level_ < 2) return;
    document_.sections.push_back(key_);
    section_ = key_.name;
    item_done();
  }

  std::string const& file_;
  Problems& problems_;
  Document document_;
  std::map<std::string, Place> first_places_;
  std::string section_;
  NamedPlace key_;  ///< whose value comes next; without a name where a key comes next
  int documents_ = 0;
  int level_ = 0;    ///< 1 in the map of sections, 2 in a section
  int refused_ = 0;  ///< open maps and lists of a part that was refused
};

}  // namespace

std::optional<Document> read_document(std::string const& text, std::string const& file,
                                      Problems& problems) {
  if (text.size() > most_bytes) {
    problems.add(place_in_file(file, 1, 1), "",
                 str("the file has ", text.size(), " bytes, more than ", format_bytes(most_bytes)));
    return std::nullopt;
  }
  if (auto const at = find_foreign_byte(text); at != std::string::npos) {
    auto const before = text.substr(0, at);
    auto const line = static_cast<int>(std::ranges::count(before, '\n')) + 1;
    auto const column = static_cast<int>(at - (before.rfind('\n') + 1)) + 1;
    problems.add(place_in_file(file, line, column), "",
                 printable(text.substr(at, 1)) + " in the file, which must be UTF-8 text");
    return std::nullopt;
  }
  Collector collector(file, problems);
  std::istringstream stream(text);
  try {
    YAML::Parser parser(stream);
    // Not until there are no more: on some input the parser finds empty documents without end.
    if (parser.HandleNextDocument(collector)) parser.HandleNextDocument(collector);
  } catch (YAML::Exception const& error) {
    problems.add(place_of(file, error.mark), "", "not YAML: " + printable(error.msg));
    return std::nullopt;
  }
  return collector.take();
}

}  // namespace stratagem
