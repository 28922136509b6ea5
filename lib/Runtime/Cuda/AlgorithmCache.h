//===- AlgorithmCache.h - Choices that later runs must repeat -------------------------===//
//
// A text file, one line for each choice: key, a tab, the value in hexadecimal. Lines are only ever added,
// each in one write, so that ranks may share the file; of two lines with one key the first counts. A line
// that cannot be read is passed over.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_ALGORITHMCACHE_H
#define DS_LIB_RUNTIME_CUDA_ALGORITHMCACHE_H

#include "Commands.h"

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

  /// The file "algorithms" in DS_CACHE_DIR, else in $XDG_CACHE_HOME/deepstage or ~/.cache/deepstage, which is
  /// made if need be. An unusable directory gives a cache that holds nothing and keeps nothing.
  static AlgorithmCache open();

  /// Whether `add` can keep anything.
  bool keeps() const { return writable; }
  std::optional<Value> find(const std::string &key) const;
  void add(const std::string &key, const Value &value);

private:
  std::string path;
  bool writable = false;
  std::unordered_map<std::string, Value> values;
};

/// What the keys of a library's choices begin with: they hold for one kind of device and one version.
std::string keyPrefix(const Hardware &hardware, std::string_view library, size_t version);

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_ALGORITHMCACHE_H
