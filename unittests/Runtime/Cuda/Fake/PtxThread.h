//===- PtxThread.h - What a thread of translated PTX does --------------------------------===//
//
// test/oracle/ptx_to_cpp.py turns each instruction of a program's PTX into one statement over these.
// Registers are variables of the width that the PTX declares; an instruction's type says how their bits are
// read.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_RUNTIME_CUDA_FAKE_PTXTHREAD_H
#define DS_UNITTESTS_RUNTIME_CUDA_FAKE_PTXTHREAD_H

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace ptx {

/// Where an access goes, as the instruction says.
enum class Space : uint32_t { Generic, Global, Shared };

/// What the fake device gives each thread of a block.
struct Thread {
  uint32_t thread, block, blocks, threads;
  char *shared;                                                   ///< of the block
  bool (*reaches)(uint64_t address, uint32_t bytes, Space space); ///< false: a fault, and the thread ends
  uint32_t (*shuffle)(uint32_t word, uint32_t mask);
  void (*blockBarrier)();
  void (*warpBarrier)();
};

/// An entry of the translated module.
struct Entry {
  const char *name;
  void (*run)(const uint64_t *parameters, const Thread &thread);
  uint32_t parameters, threads, sharedBytes; ///< parameters: words of 8 bytes
  bool meets;                                ///< its threads wait for one another
};

/// A variable of the module that all its threads may read, and write where it holds counters.
struct Table {
  const void *data;
  uint64_t bytes;
};

/// The low bits of a register as a T.
template <class T, class R>
T get(R value) {
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<R, bool>)
    return value;
  static_assert(sizeof(T) <= sizeof(R));
  T result;
  std::memcpy(&result, &value, sizeof result);
  return result;
}

/// Writes a T to a register that may be wider: integers are extended by their sign, all else by zeros.
template <class T, class R>
void put(R &to, T value) {
  if constexpr (std::is_integral_v<T> && std::is_integral_v<R>) {
    to = static_cast<R>(value);
  } else {
    static_assert(sizeof(T) <= sizeof(R));
    to = 0;
    std::memcpy(&to, &value, sizeof value);
  }
}

template <class T>
T load(uint64_t address) {
  T value;
  std::memcpy(&value, reinterpret_cast<const void *>(address), sizeof value);
  return value;
}
template <class T>
void store(uint64_t address, T value) {
  std::memcpy(reinterpret_cast<void *>(address), &value, sizeof value);
}

/// atom.inc: what the counter was, which goes on from `last` with 0. Blocks run one after another, and a
/// block's threads take turns where they meet.
inline uint32_t countUp(uint64_t address, uint32_t last) {
  const uint32_t before = load<uint32_t>(address);
  store(address, before >= last ? 0 : before + 1);
  return before;
}

/// `address`, which must be that of a word among `words` parameters.
inline uint64_t parameter(const uint64_t *parameters, uint64_t words, uint64_t address) {
  const uint64_t offset = address - reinterpret_cast<uint64_t>(parameters);
  if (offset % 8 != 0 || offset / 8 >= words)
    std::abort();
  return address;
}

/// 16-bit floats, which registers hold as bits.
struct BFloat {
  uint16_t bits;
  operator float() const {
    const uint32_t word = uint32_t(bits) << 16;
    return get<float>(word);
  }
  BFloat operator-() const { return {static_cast<uint16_t>(bits ^ 0x8000)}; }
  static BFloat from(float value) {
    uint32_t word;
    std::memcpy(&word, &value, sizeof word);
    if (value != value)
      return {0x7fff};
    return {static_cast<uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16)}; // to nearest, ties to even
  }
};

template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<To, BFloat>)
    return BFloat::from(value);
  else if constexpr (std::is_same_v<From, BFloat>)
    return static_cast<To>(static_cast<float>(value));
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) { // saturates; NaN becomes 0
    constexpr double low = std::is_signed_v<To> ? -std::ldexp(1.0, 8 * sizeof(To) - 1) : 0;
    constexpr int bits = 8 * sizeof(To) - std::is_signed_v<To>;
    if (value != value)
      return 0;
    if (value >= std::ldexp(1.0, bits))
      return static_cast<To>(~uint64_t(0) >> (64 - bits));
    return value <= low ? static_cast<To>(std::is_signed_v<To> ? uint64_t(1) << bits : 0)
                        : static_cast<To>(value);
  } else
    return static_cast<To>(value);
}

/// Shifts by the width or more leave nothing, or the sign.
template <class T>
T shiftLeft(T value, uint32_t by) {
  return by >= 8 * sizeof(T) ? T(0) : static_cast<T>(value << by);
}
template <class T>
T shiftRight(T value, uint32_t by) {
  if (by >= 8 * sizeof(T))
    return value < 0 ? T(-1) : T(0);
  return static_cast<T>(value >> by);
}
template <class T>
T bitField(T value, uint32_t at, uint32_t length) {
  return length >= 64 ? value >> at : shiftRight(value, at) & ((T(1) << length) - 1);
}
template <class T>
T highProduct(T a, T b) {
  using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
  return static_cast<T>(static_cast<Wide>(a) * b >> (8 * sizeof(T)));
}

template <class T>
T largest(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fmax(a, b);
  return a < b ? b : a;
}
template <class T>
T smallest(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fmin(a, b);
  return b < a ? b : a;
}
template <class T>
T largestOrNan(T a, T b) {
  return a != a || b != b ? static_cast<T>(NAN) : largest(a, b);
}
template <class T>
T smallestOrNan(T a, T b) {
  return a != a || b != b ? static_cast<T>(NAN) : smallest(a, b);
}
template <class T>
bool unordered(T a, T b) {
  return a != a || b != b;
}

} // namespace ptx

#endif // DS_UNITTESTS_RUNTIME_CUDA_FAKE_PTXTHREAD_H
