//===- Boxing.h - Items that fit together become one item -----------------------===//
//
// Two items with the same lifetime can be stacked, two items of the same size of which one begins as the
// other ends can be chained, and five items can turn around the one in their middle; all give a rectangle
// without waste. Doing so again and again rebuilds a packing that was cut from rectangles, and makes large
// instances small. The price: a chain commits two items to one address, which is not always best; the solver
// therefore tries the unboxed items as well.
//
// Example: 4 and 2 bytes that both live in [0, 3) are stacked to a box of 6 bytes; 6 bytes in [3, 7) are
// chained to that. What is placed is one item of 6 bytes in [0, 7), whose parts come out at 0, 4 and 0 of it.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_ANALYSIS_PACKING_BOXING_H
#define DS_LIB_ANALYSIS_PACKING_BOXING_H

#include "Placer.h"

#include <utility>

namespace ds::analysis::detail {

/// Which of the two ways to join items goes first where both are possible.
enum class BoxOrder : uint8_t { ChainsFirst, StacksFirst };

/// A forest over items; its roots are what is placed.
class Boxing {
public:
  Boxing(const std::vector<Item> &items, BoxOrder order);

  /// The boxes to place, as items.
  std::vector<Item> rootItems() const;

  /// Addresses of the items, given those of rootItems().
  std::vector<int64_t> expand(const std::vector<int64_t> &rootOffsets) const;

private:
  struct Node {
    Item item;
    std::vector<std::pair<int32_t, int64_t>> children; ///< with their offset from the box's
  };
  /// Five roots around `middle`, which lies above `longLeft` and under `longRight`.
  struct Pinwheel {
    int32_t middle, longLeft, left, right, longRight;
  };

  bool chain();
  bool stack(size_t longest);
  bool stackForChains();
  bool turn();
  void addPinwheel(const Pinwheel &wheel, std::vector<char> &joined, std::vector<int32_t> &added);
  std::vector<std::pair<size_t, size_t>> equalLifetimes();
  void addStack(std::vector<int32_t> members, std::vector<char> &joined, std::vector<int32_t> &added);
  void replaceRoots(const std::vector<char> &joined, std::vector<int32_t> added);

  size_t numItems;
  std::vector<Node> nodes; ///< the items, then the boxes in the order they were made
  std::vector<int32_t> roots;
};

} // namespace ds::analysis::detail

#endif // DS_LIB_ANALYSIS_PACKING_BOXING_H
