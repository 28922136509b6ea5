//===- TestFiles.h - Files that tests make and look at -------------------------===//
#ifndef DS_UNITTESTS_RUNTIME_FORMATS_TESTFILES_H
#define DS_UNITTESTS_RUNTIME_FORMATS_TESTFILES_H

#include "gtest/gtest.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ds::rt {

/// A directory that is gone after the test.
class FormatsTest : public testing::Test {
protected:
  FormatsTest() {
    std::string pattern = testing::TempDir() + "ds-formats-XXXXXX";
    directory = mkdtemp(pattern.data());
  }
  ~FormatsTest() override {
    std::error_code ignored;
    std::filesystem::permissions(directory, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(directory, ignored);
  }

  std::string path(const std::string &name) const { return directory + "/" + name; }

  std::string write(const std::string &name, std::string_view contents) const {
    std::ofstream(path(name), std::ios::binary) << contents;
    return path(name);
  }

  static std::string read(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  /// Names in the directory, to see that nothing was left behind.
  std::set<std::string> list() const {
    std::set<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(directory))
      names.insert(entry.path().filename());
    return names;
  }

  std::string directory;
};

/// The bytes of `values`.
template <class T>
std::string bytesOf(const std::vector<T> &values) {
  return {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T)};
}

/// A safetensors file with this JSON as its header, unpadded.
inline std::string safeTensors(std::string_view json, std::string_view data = {}) {
  uint64_t length = json.size();
  std::string out(reinterpret_cast<const char *>(&length), 8);
  out += json;
  out += data;
  return out;
}

} // namespace ds::rt

#endif // DS_UNITTESTS_RUNTIME_FORMATS_TESTFILES_H
