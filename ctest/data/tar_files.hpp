#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace stratagem::test {

/// What ends an archive.
inline std::string const tar_end(1024, '\0');

/// Octal digits with zeros in front, as most fields of a header have them.
inline std::string octal(std::uint64_t value, int digits) {
  std::string text(static_cast<std::size_t>(digits), '0');
  for (auto c = text.rbegin(); c != text.rend(); ++c, value /= 8)
    *c = static_cast<char>('0' + value % 8);
  return text;
}

/// The block with the checksum that belongs to it.
inline std::string sealed(std::string header) {
  header.replace(148, 8, 8, ' ');
  std::uint64_t sum = 0;
  for (char const c : header) sum += static_cast<unsigned char>(c);
  header.replace(148, 7, octal(sum, 6) + '\0');
  return header;
}

/// A header with these fields, whether or not they are right; without magic, in the format of v7.
struct TarHeader {
  std::string name;
  char type = '0';
  std::string size = octal(0, 11);
  std::string magic = std::string(
      "ustar\0"
      "00",
      8);
  std::string prefix;

  std::string text() const {
    std::string header(512, '\0');
    auto put = [&](std::size_t at, std::size_t most, std::string_view value) {
      value = value.substr(0, most);
      header.replace(at, value.size(), value);
    };
    put(0, 100, name);
    put(100, 8, "0000644");
    put(124, 12, size);
    put(156, 1, {&type, 1});
    put(257, 8, magic);
    put(345, 155, prefix);
    return sealed(header);
  }
};

inline std::string padded(std::string content) {
  content.resize((content.size() + 511) / 512 * 512);
  return content;
}

inline std::string tar_member(std::string const& name, std::string const& content,
                              char type = '0') {
  return TarHeader{.name = name, .type = type, .size = octal(content.size(), 11)}.text() +
         padded(content);
}

/// "LENGTH KEY=VALUE\n", where LENGTH counts itself.
inline std::string pax_record(std::string const& key, std::string const& value) {
  auto const rest = " " + key + "=" + value + "\n";
  auto length = rest.size();
  while (length != rest.size() + std::to_string(length).size())
    length = rest.size() + std::to_string(length).size();
  return std::to_string(length) + rest;
}

/// An extended header of pax, with these records.
inline std::string pax_header(std::string const& records, char type = 'x') {
  return tar_member("././@PaxHeader", records, type);
}

}  // namespace stratagem::test
