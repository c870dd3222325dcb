#include <iostream>
#include <set>

#include "base/text.hpp"
#include "config/keys.hpp"

using namespace stratagem;

/// Prints the words of a configuration, as a dictionary of libFuzzer: names of sections and keys,
/// and what stands in the lists of values.
int main() {
  std::set<std::string> words;
  for (auto const& key : describe_keys({{"mnist", "cifar10"}, {"lenet", "vgg16"}})) {
    words.insert(section_of(key.path));
    words.insert(name_in_section(key.path) + ": ");
    for (auto const& value : split(key.type, '|')) words.emplace(trim(value));
  }
  words.erase("");
  for (auto const& word : words) std::cout << '"' << word << "\"\n";
}
