//===- AlgorithmCache.cpp - Choices that later runs must repeat -----------------------===//
#include "AlgorithmCache.h"
#include "ds/Support/Descriptor.h"

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

/// Key and value of a line; nothing if it is damaged.
std::optional<std::pair<std::string, AlgorithmCache::Value>> parseLine(std::string_view line) {
  const size_t last = line.rfind('\t');
  const size_t first = line.find('\t');
  if (last == std::string_view::npos || first == last || first == 0)
    return std::nullopt;
  const std::optional<AlgorithmCache::Value> sum = parseValue(line.substr(last + 1));
  std::optional<AlgorithmCache::Value> value = parseValue(line.substr(first + 1, last - first - 1));
  if (!sum || !value || *sum != AlgorithmCache::Value{digestOf(line.substr(0, last))})
    return std::nullopt;
  return std::pair(std::string(line.substr(0, first)), std::move(*value));
}

} // namespace

std::string spellValue(const AlgorithmCache::Value &value) {
  std::string text;
  for (uint64_t word : value)
    text += fmt::format("{:016x}", word);
  return text;
}

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

uint64_t digestOf(std::string_view text) {
  uint64_t digest = 0xcbf29ce484222325;
  for (const char c : text)
    digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return digest;
}

AlgorithmCache AlgorithmCache::open() {
  AlgorithmCache cache;
  const std::string folder = directory();
  std::error_code error;
  if (folder.empty() || (std::filesystem::create_directories(folder, error), error))
    return cache;
  cache.path = folder + "/choices";
  cache.writable =
      bool(Descriptor(::open(cache.path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666)));
  cache.read();
  return cache;
}

/// A last line without an end is another process's that is being written, or was cut off.
void AlgorithmCache::read() {
  values.clear();
  damaged = firstDamaged = 0;
  std::ifstream file(path, std::ios::binary);
  size_t number = 0;
  for (std::string line; ++number, std::getline(file, line);) {
    auto parsed = file.eof() ? std::nullopt : parseLine(line);
    if (parsed)
      values[parsed->first].push_back(std::move(parsed->second));
    else if (damaged++ == 0)
      firstDamaged = number;
  }
}

const std::vector<AlgorithmCache::Value> &AlgorithmCache::find(const std::string &key) const {
  static const std::vector<Value> kNone;
  const auto found = values.find(key);
  return found == values.end() ? kNone : found->second;
}

/// Behind a line that was cut off it begins a new one.
bool AlgorithmCache::append(const std::string &line) const {
  const Descriptor file(::open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC));
  if (!file)
    return false;
  const int fd = file.get();
  char last = '\n';
  if (const off_t end = ::lseek(fd, 0, SEEK_END); end > 0)
    (void)!::pread(fd, &last, 1, end - 1);
  const std::string text = (last == '\n' ? "" : "\n") + line;
  return ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

AlgorithmCache::Value AlgorithmCache::keep(const std::string &key, const Value &value) {
  const size_t known = find(key).size();
  const std::string line = key + '\t' + spellValue(value);
  writable = append(fmt::format("{}\t{:016x}\n", line, digestOf(line)));
  read();
  return find(key).size() > known ? find(key)[known] : value;
}

std::string AlgorithmCache::notice() const {
  return damaged == 0 ? ""
                      : fmt::format("{} damaged {} of '{}' passed over, the first is line {}", damaged,
                                    damaged == 1 ? "line" : "lines", path, firstDamaged);
}

std::string keyPrefix(const Hardware &hardware, std::string_view library, size_t version) {
  return fmt::format("{}/sm_{}{}/{}/driver {}/{} {}", hardware.name, hardware.major, hardware.minor,
                     hardware.multiprocessors, hardware.driver, library, version);
}

} // namespace ds::rt::cuda
