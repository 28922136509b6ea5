//===- AlgorithmCache.cpp - Choices that later runs must repeat -----------------------===//
#include "AlgorithmCache.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace ds::rt::cuda {
namespace {

std::string directory() {
  const auto variable = [](const char *name) {
    const char *value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (const std::string chosen = variable("DS_CACHE_DIR"); !chosen.empty())
    return chosen;
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty())
    return cache + "/deepstage";
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/deepstage";
}

/// Words of 16 hexadecimal digits.
std::optional<AlgorithmCache::Value> parseValue(std::string_view text) {
  AlgorithmCache::Value value;
  if (text.empty() || text.size() % 16 != 0)
    return std::nullopt;
  for (size_t at = 0; at < text.size(); at += 16) {
    const char *begin = text.data() + at, *end = begin + 16;
    const auto [stop, error] = std::from_chars(begin, end, value.emplace_back(), 16);
    if (error != std::errc() || stop != end)
      return std::nullopt;
  }
  return value;
}

} // namespace

AlgorithmCache AlgorithmCache::open() {
  AlgorithmCache cache;
  const std::string folder = directory();
  std::error_code error;
  if (folder.empty() || (std::filesystem::create_directories(folder, error), error))
    return cache;
  cache.path = folder + "/algorithms";
  std::ifstream file(cache.path);
  for (std::string line; std::getline(file, line);) {
    const size_t tab = line.find('\t');
    if (tab == std::string::npos)
      continue;
    if (std::optional<Value> value = parseValue(std::string_view(line).substr(tab + 1)))
      cache.values.emplace(line.substr(0, tab), std::move(*value));
  }
  const int fd = ::open(cache.path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  cache.writable = fd >= 0;
  if (fd >= 0)
    ::close(fd);
  return cache;
}

std::optional<AlgorithmCache::Value> AlgorithmCache::find(const std::string &key) const {
  const auto found = values.find(key);
  return found == values.end() ? std::nullopt : std::optional(found->second);
}

void AlgorithmCache::add(const std::string &key, const Value &value) {
  values.emplace(key, value);
  std::string line = key + '\t';
  for (uint64_t word : value)
    line += fmt::format("{:016x}", word);
  line += '\n';
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0)
    return;
  writable = ::write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  ::close(fd);
}

std::string keyPrefix(const Hardware &hardware, std::string_view library, size_t version) {
  return fmt::format("{}/sm_{}{}/{}/{} {}", hardware.name, hardware.major, hardware.minor,
                     hardware.multiprocessors, library, version);
}

} // namespace ds::rt::cuda
