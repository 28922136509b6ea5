//===- AlgorithmCache.h - Choices that later runs must repeat -------------------------===//
//
// A text file, one line for each choice: key, a tab, the value in hexadecimal, a tab, a checksum of both.
// Lines are only ever added, each in one write, so that processes may share the file. Of several lines with
// one key the first that can still be taken counts, for everybody. A line that is damaged is passed over.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_BINDING_ALGORITHMCACHE_H
#define DS_LIB_RUNTIME_CUDA_BINDING_ALGORITHMCACHE_H

#include "Binding.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ds::rt::cuda {

class AlgorithmCache {
public:
  using Value = std::vector<uint64_t>;

  /// The file "choices" in DS_CACHE_DIR, else in $XDG_CACHE_HOME/deepstage or ~/.cache/deepstage, which is
  /// made if need be. An unusable directory gives a cache that holds nothing and keeps nothing.
  static AlgorithmCache open();

  /// Whether `keep` can keep anything.
  bool keeps() const { return writable; }
  /// What is kept under a key, in the order in which it counts.
  const std::vector<Value> &find(const std::string &key) const;
  /// Keeps a value behind those of `find`. Returns the one that counts: another process may have been faster.
  Value keep(const std::string &key, const Value &value);

  /// "2 damaged lines of '/tmp/choices' passed over, the first is line 7"; empty if there are none.
  std::string notice() const;

private:
  void read();
  bool append(const std::string &line) const;

  std::string path;
  bool writable = false;
  std::unordered_map<std::string, std::vector<Value>> values;
  size_t damaged = 0, firstDamaged = 0; ///< lines; number of the first, from 1
};

/// Words of 16 hexadecimal digits, as files and messages between ranks have them.
std::string spellValue(const AlgorithmCache::Value &value);
std::optional<AlgorithmCache::Value> parseValue(std::string_view text);

/// FNV-1a: tells texts apart that differ by accident.
uint64_t digestOf(std::string_view text);

/// What the keys of a library's choices begin with: they hold for one kind of device, one driver and one
/// version of the library.
std::string keyPrefix(const Hardware &hardware, std::string_view library, size_t version);

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_BINDING_ALGORITHMCACHE_H
