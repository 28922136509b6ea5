//===- ReferenceMain.cpp - Prints the key reference --------------------------------===//
//
// `ds-config-reference docs/config.md` replaces what follows the marker line in that file by the reference of
// the key table; without an argument it prints the reference.
//
//===---------------------------------------------------------------------------===//
#include "ds/Config/Config.h"

#include <fstream>
#include <iostream>
#include <sstream>

static constexpr std::string_view kMarker = "<!-- generated: everything below -->\n";

int main(int argc, char **argv) {
  if (argc < 2) {
    std::cout << ds::config::keyReference();
    return 0;
  }
  std::stringstream text;
  text << std::ifstream(argv[1]).rdbuf();
  std::string page = text.str();
  size_t marker = page.find(kMarker);
  if (marker == std::string::npos) {
    std::cerr << argv[1] << ": expects the line " << kMarker;
    return 3;
  }
  page = page.substr(0, marker + kMarker.size()) + "\n" + ds::config::keyReference();
  std::ofstream out(argv[1], std::ios::trunc);
  out << page;
  return out.flush() ? 0 : 6;
}
