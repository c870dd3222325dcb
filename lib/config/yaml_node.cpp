#include "config/yaml_node.hpp"

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "base/portable_text.hpp"
#include "base/text.hpp"
#include "config/yaml_file.hpp"
#include "keys/text_form.hpp"

namespace stratagem {
namespace {

constexpr int most_nodes = 20'000;  // keys and values; the largest study has some hundred

Place place_of(std::string const& file, YAML::Mark const& mark) {
  return place_in_file(file, std::max(mark.line, 0) + 1, std::max(mark.column, 0) + 1);
}

/// Follows the parser's events. All documents behind the first are one problem.
class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(std::string const& file, Problems& problems) : file_(file), problems_(problems) {
    root_.place = place_in_file(file, 1, 1);
    root_.scalar.null = true;
  }

  YamlNode take() { return std::move(root_); }

  void OnDocumentStart(YAML::Mark const& mark) override {
    if (++documents_ > 1)
      problems_.add(place_of(file_, mark), "", "a second document; there must be one");
  }
  void OnDocumentEnd() override {}

  void OnNull(YAML::Mark const& mark, YAML::anchor_t anchor) override {
    auto node = make(YamlNode::Kind::scalar, mark, "?", anchor);
    node.scalar.null = true;
    // The mark of a value that is not there is that of the next token.
    if (!open_.empty() && open_.back().key) node.place = open_.back().key->place;
    add(std::move(node), mark);
  }
  void OnScalar(YAML::Mark const& mark, std::string const& tag, YAML::anchor_t anchor,
                std::string const& value) override {
    auto node = make(YamlNode::Kind::scalar, mark, tag, anchor);
    node.scalar = {value, tag == "!", false};
    add(std::move(node), mark);
  }
  void OnAlias(YAML::Mark const& mark, YAML::anchor_t) override {
    add(make(YamlNode::Kind::alias, mark, "?", YAML::NullAnchor), mark);
  }

  void OnSequenceStart(YAML::Mark const& mark, std::string const& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(make(YamlNode::Kind::list, mark, tag, anchor), mark);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(YAML::Mark const& mark, std::string const& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(make(YamlNode::Kind::map, mark, tag, anchor), mark);
  }
  void OnMapEnd() override { close(); }

 private:
  /// A list or map whose end has not come, and the key whose value comes next.
  struct Open {
    YamlNode node;
    std::optional<YamlNode> key;

    bool expects_key() const { return node.kind == YamlNode::Kind::map && !key; }
  };

  YamlNode make(YamlNode::Kind kind, YAML::Mark const& mark, std::string const& tag,
                YAML::anchor_t anchor) {
    if (++nodes_ > most_nodes)
      throw YAML::ParserException(mark, str("more than ", most_nodes, " keys and values"));
    YamlNode node;
    node.kind = kind;
    node.place = place_of(file_, mark);
    node.tagged = !tag.empty() && tag != "?" && tag != "!";
    node.anchored = anchor != YAML::NullAnchor;
    return node;
  }

  void add(YamlNode node, YAML::Mark const& mark) {
    if (documents_ > 1) return;
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (auto& parent = open_.back(); parent.node.kind == YamlNode::Kind::list) {
      parent.node.items.push_back(std::move(node));
    } else if (parent.key) {
      parent.node.members.push_back({std::move(*parent.key), std::move(node)});
      parent.key.reset();
    } else if (node.kind == YamlNode::Kind::scalar) {
      parent.key = std::move(node);
    } else {
      throw YAML::ParserException(mark, "a key must be a word");
    }
  }

  void open(YamlNode node, YAML::Mark const& mark) {
    if (documents_ > 1) return;
    if (!open_.empty() && open_.back().expects_key())
      throw YAML::ParserException(mark, "a key must be a word");
    open_.push_back({std::move(node), {}});
  }

  void close() {
    if (documents_ > 1) return;
    auto node = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(node), YAML::Mark());
  }

  std::string const& file_;
  Problems& problems_;
  YamlNode root_;
  std::vector<Open> open_;
  int documents_ = 0;
  int nodes_ = 0;
};

/// False, with a problem, for bytes that no YAML file has.
bool is_readable(std::string const& text, std::string const& file, Problems& problems) {
  if (text.size() > most_yaml_bytes) {
    problems.add(
        place_in_file(file, 1, 1), "",
        str("the file has ", text.size(), " bytes, more than ", format_bytes(most_yaml_bytes)));
    return false;
  }
  // The parser looks for the end of each before it tells of the first.
  if (std::ranges::count_if(text, [](char c) { return c == '[' || c == '{'; }) > most_nodes) {
    problems.add(place_in_file(file, 1, 1), "",
                 str("the file begins more than ", most_nodes, " lists and maps"));
    return false;
  }
  auto const at = find_foreign_byte(text);
  if (at == std::string::npos) return true;
  auto const before = text.substr(0, at);
  auto const line = static_cast<int>(std::ranges::count(before, '\n')) + 1;
  auto const column = static_cast<int>(at - (before.rfind('\n') + 1)) + 1;
  problems.add(place_in_file(file, line, column), "",
               printable(text.substr(at, 1)) + " in the file, which must be UTF-8 text");
  return false;
}

}  // namespace

std::optional<YamlNode> read_yaml(std::string const& text, std::string const& file,
                                  Problems& problems) {
  if (!is_readable(text, file, problems)) return std::nullopt;
  TreeBuilder builder(file, problems);
  std::istringstream stream(text);
  try {
    YAML::Parser parser(stream);
    // Not until there are no more: on some input the parser finds empty documents without end.
    if (parser.HandleNextDocument(builder)) parser.HandleNextDocument(builder);
  } catch (YAML::Exception const& error) {
    problems.add(place_of(file, error.mark), "", "not YAML: " + printable(error.msg));
    return std::nullopt;
  }
  return builder.take();
}

void check_plain(YamlNode const& node, std::string const& path, Problems& problems) {
  if (node.tagged) problems.add(node.place, path, "a tag; leave it out");
  if (node.anchored) problems.add(node.place, path, "an anchor; leave it out");
}

bool expect_scalar(YamlNode const& node, std::string const& path, Problems& problems) {
  switch (node.kind) {
    case YamlNode::Kind::scalar:
      check_plain(node, path, problems);
      return true;
    case YamlNode::Kind::list:
      problems.add(node.place, path, "a list; one value is expected");
      return false;
    case YamlNode::Kind::map:
      problems.add(node.place, path, "a map; one value is expected");
      return false;
    case YamlNode::Kind::alias:
      problems.add(node.place, path, "an alias; write the value itself");
      return false;
  }
  return false;
}

void check_keys(YamlNode const& map, std::string const& path, Problems& problems) {
  std::map<std::string, Place> first;
  for (auto const& [key, value] : map.members) {
    auto const key_path = (path.empty() ? "" : path + '.') + shown_key(key.scalar.text);
    check_plain(key, key_path, problems);
    auto const [earlier, is_new] = first.emplace(key.scalar.text, key.place);
    if (!is_new)
      problems.add(key.place, key_path,
                   str("duplicate key, first given in line ", earlier->second.line));
  }
}

}  // namespace stratagem
