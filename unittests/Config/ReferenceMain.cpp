//===- ReferenceMain.cpp - Writes the key references --------------------------------===//
//
// `ds-config-reference docs/config.md docs/cluster.md` replaces what follows the marker line in these files
// by the references of the key tables; without arguments it prints that of the configuration.
//
//===---------------------------------------------------------------------------===//
#include "ds/Config/Cluster.h"

#include <fstream>
#include <iostream>
#include <sstream>

static constexpr std::string_view kMarker = "<!-- generated: everything below -->\n";

/// Rewrites one page; its exit code.
static int rewrite(const std::string &path, const std::string &reference) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::string page = text.str();
  size_t marker = page.find(kMarker);
  if (marker == std::string::npos) {
    std::cerr << path << ": expects the line " << kMarker;
    return 3;
  }
  std::ofstream out(path, std::ios::trunc);
  out << page.substr(0, marker + kMarker.size()) << "\n" << reference;
  return out.flush() ? 0 : 6;
}

int main(int argc, char **argv) {
  if (argc < 2)
    std::cout << ds::config::keyReference();
  int code = argc > 1 ? rewrite(argv[1], ds::config::keyReference()) : 0;
  return code == 0 && argc > 2 ? rewrite(argv[2], ds::config::clusterReference()) : code;
}
