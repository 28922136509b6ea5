//===- HeadSize.h - The widest head of ds.attention -----------------------------===//
#ifndef DS_SUPPORT_HEADSIZE_H
#define DS_SUPPORT_HEADSIZE_H

#include <cstdint>

namespace ds {

/// The kernels of attention keep a tile of heads on the stack. Attention with wider heads is two products and
/// a softmax.
inline constexpr int64_t kMaxHeadSize = 256;

} // namespace ds

#endif // DS_SUPPORT_HEADSIZE_H
