#include <algorithm>
#include <cctype>
#include <iostream>

#include "app/configuration.hpp"
#include "base/text.hpp"

namespace stratagem::app {
namespace {

constexpr char head[] = R"(# Completion of stratagem's commands, options, files, and keys after -s.
# bash, in ~/.bashrc:  source <(stratagem completion bash)
)";

constexpr char zsh_head[] =
    R"(# Completion of stratagem's commands, options, files, and keys after -s.
# zsh, in ~/.zshrc:  source <(stratagem completion zsh)
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -u }
autoload -U +X bashcompinit && bashcompinit # brings compgen
)";

/// Works on the line up to the cursor: bash cuts COMP_WORDS at `=`, zsh does not.
constexpr char functions[] = R"bash(
_stratagem_replies() {
  local word=$1 reply
  shift
  for reply in "$@"; do
    [[ $reply != "$word"* ]] || COMPREPLY+=("$reply")
  done
}

_stratagem_files() {
  local file
  while IFS= read -r file; do
    [[ ! -d $file && $file != *.yaml && $file != *.yml ]] || COMPREPLY+=("$file")
  done < <(compgen -f -- "$1")
  if type compopt &> /dev/null; then compopt -o filenames; fi
}

_stratagem_setting() {
  local word=$1 key=${1%%=*}
  if [[ $word == *=* ]]; then
    eval "_stratagem_replies \"\${word#*=}\" $(_stratagem_values "$key")"
    [[ ${COMP_WORDBREAKS:-} == *=* ]] || COMPREPLY=("${COMPREPLY[@]/#/$key=}")
  else
    eval "_stratagem_replies \"\$word\" $(_stratagem_keys)"
    if type compopt &> /dev/null; then compopt -o nospace; fi
  fi
}

_stratagem() {
  local line=${COMP_LINE:0:$COMP_POINT} word before command
  word=${line##*[[:space:]]}
  before=${line%"$word"}
  before=${before%"${before##*[![:space:]]}"}
  command=${before#*[[:space:]]}
  command=${command%%[[:space:]]*}
  COMPREPLY=()
  if [[ $before != *[[:space:]]* ]]; then
    eval "_stratagem_replies \"\$word\" $(_stratagem_commands)"
  elif [[ ${before##*[[:space:]]} == -s || ${before##*[[:space:]]} == --set ]]; then
    _stratagem_setting "$word"
  elif [[ $word == -* ]]; then
    eval "_stratagem_replies \"\$word\" $(_stratagem_options "$command")"
  elif [[ ${before##*[[:space:]]} == --* ]]; then
    eval "_stratagem_replies \"\$word\" $(_stratagem_choices "$command${before##*[[:space:]]}")"
  elif [[ ${before##*[[:space:]]} != -* ]]; then
    case $(_stratagem_takes "$command") in
      YAML) _stratagem_files "$word" ;;
      FILE) ;;
      *) eval "_stratagem_replies \"\$word\" $(_stratagem_takes "$command")" ;;
    esac
  fi
}
)bash";

constexpr char tail[] = R"(
complete -o bashdefault -o default -F _stratagem stratagem
)";

constexpr char zsh_tail[] = R"(
_stratagem_zsh() {
  local COMP_LINE="${(j: :)words[1,CURRENT-1]} $PREFIX" reply
  local COMP_POINT=${#COMP_LINE}
  local -a COMPREPLY
  () { emulate -L ksh; _stratagem }
  for reply in "${COMPREPLY[@]}"; do
    case $reply in
      *=) compadd -Q -S '' -- "$reply" ;; # its value follows
      *) compadd -Q -- "$reply" ;;
    esac
  done
  (( ${#COMPREPLY} )) || _files
}
compdef _stratagem_zsh stratagem
)";

/// A word that a shell takes as it is.
bool is_plain(std::string const& word) {
  return !word.empty() && std::ranges::all_of(word, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  });
}

std::string plain_words(std::string const& text, char separator) {
  std::vector<std::string> words;
  for (auto const& piece : split(text, separator))
    if (std::string const word(trim(piece)); is_plain(word)) words.push_back(word);
  return join(words, " ");
}

/// A function that prints the words which belong to its argument.
class Lookup {
 public:
  explicit Lookup(std::string const& name) : text_("\n" + name + "() {\n  case $1 in\n") {}

  void add(std::string const& argument, std::string const& words) {
    if (!words.empty()) text_ += "    " + argument + ") echo '" + words + "' ;;\n";
  }
  std::string text() const { return text_ + "  esac\n}\n"; }

 private:
  std::string text_;
};

std::string list(std::string const& name, std::vector<std::string> const& words) {
  return "\n" + name + "() {\n  echo '" + join(words, " ") + "'\n}\n";
}

/// What may stand behind a command: words to choose from, a configuration, or any file.
std::string first_argument(Options const& options) {
  if (options.declared_words().empty()) return "FILE";
  auto const& word = options.declared_words().front();
  if (!word.choices.empty()) return join(word.choices, " ");
  return word.name.starts_with("CONFIG") || word.name.starts_with("STUDY") ? "YAML" : "FILE";
}

std::string words_of_this_program() {
  std::vector<std::string> names, keys;
  Lookup options("_stratagem_options"), takes("_stratagem_takes"), choices("_stratagem_choices"),
      values("_stratagem_values");
  for (auto const& command : commands()) {
    Options const declared(command);
    std::vector<std::string> longs;
    for (auto const& option : declared.declared()) {
      longs.push_back("--" + option.name);
      choices.add(command.name + "--" + option.name, join(option.choices, " "));
    }
    names.push_back(command.name);
    options.add(command.name, join(longs, " "));
    takes.add(command.name, first_argument(declared));
  }
  for (auto const& key : describe_keys(known_names())) {
    if (section_of(key.path).empty() || std::ranges::count(keys, key.path + "=") > 0) continue;
    keys.push_back(key.path + "=");
    if (key.type.find(" | ") != std::string::npos) values.add(key.path, plain_words(key.type, '|'));
  }
  return list("_stratagem_commands", names) + list("_stratagem_keys", keys) + options.text() +
         takes.text() + choices.text() + values.text();
}

}  // namespace

void declare_completion(Options& options) {
  options.add_word({.name = "SHELL", .meaning = "whose script it is", .choices = {"bash", "zsh"}});
  options.add_example("source <(stratagem completion bash)", "in ~/.bashrc");
}

ExitCode execute_completion(Options const& options) {
  auto const& shell = options.words().front();
  bool const zsh = shell == "zsh";
  std::cout << (zsh ? zsh_head : head) << words_of_this_program() << functions
            << (zsh ? zsh_tail : tail);
  return ExitCode::done;
}

}  // namespace stratagem::app
