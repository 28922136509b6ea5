//===- Align.h - Rounding up to powers of two -----------------------------------===//
#ifndef DS_SUPPORT_ALIGN_H
#define DS_SUPPORT_ALIGN_H

#include <type_traits>

namespace ds {

/// `value`, which is not negative, rounded up to a multiple of the power of two `alignment`.
template <class Integer>
constexpr Integer alignTo(Integer value, std::type_identity_t<Integer> alignment) {
  return (value + alignment - 1) & -alignment;
}

} // namespace ds

#endif // DS_SUPPORT_ALIGN_H
