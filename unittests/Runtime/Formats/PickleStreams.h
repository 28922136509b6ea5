//===- PickleStreams.h - Pickles written opcode by opcode -----------------------===//
#ifndef DS_UNITTESTS_RUNTIME_FORMATS_PICKLESTREAMS_H
#define DS_UNITTESTS_RUNTIME_FORMATS_PICKLESTREAMS_H

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace ds::rt::streams {

template <class T>
std::string little(T value) {
  return {reinterpret_cast<const char *>(&value), sizeof(value)};
}

inline std::string integer(int32_t value) { return "J" + little(value); }
inline std::string text(std::string_view value) {
  return "X" + little(uint32_t(value.size())) + std::string(value);
}
inline std::string global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}
inline std::string tuple(std::string_view items) { return "(" + std::string(items) + "t"; }
inline std::string call(std::string_view callee, std::string_view items) {
  return std::string(callee) + tuple(items) + "R";
}
/// An integer of up to 8 bytes.
inline std::string longInteger(int64_t value) { return "\x8a\x08" + little(value); }

/// The storage of `count` elements at data/`key`.
inline std::string storage(std::string_view key, int64_t count, std::string_view type = "FloatStorage") {
  return tuple(text("storage") + global("torch", type) + text(key) + text("cpu") + longInteger(count)) + "Q";
}

inline std::string extents(const std::vector<int64_t> &values) {
  std::string items;
  for (int64_t value : values)
    items += longInteger(value);
  return tuple(items);
}

inline std::string tensor(std::string_view storage, int64_t offset, const std::vector<int64_t> &shape,
                          const std::vector<int64_t> &strides) {
  return call(global("torch._utils", "_rebuild_tensor_v2"),
              std::string(storage) + longInteger(offset) + extents(shape) + extents(strides) + "\x89" +
                  call(global("collections", "OrderedDict"), ""));
}

/// A whole pickle of protocol 2.
inline std::string pickle(std::string_view value) { return "\x80\x02" + std::string(value) + "."; }

} // namespace ds::rt::streams

#endif // DS_UNITTESTS_RUNTIME_FORMATS_PICKLESTREAMS_H
