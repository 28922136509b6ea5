//===- ClusterKeys.h - The one table of all keys of a cluster description ------------===//
//
// Path, kind, whether it must be there, what it means and where it lands: reading, unknown-key detection and
// the reference in docs/cluster.md all read this table and nothing else.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_CONFIG_CLUSTERKEYS_H
#define DS_LIB_CONFIG_CLUSTERKEYS_H

#include "ds/Config/Cluster.h"

#include <span>

namespace ds::config {

enum class FigureKind : uint8_t {
  Text,
  Count,        ///< an integer of at least 1
  Bytes,        ///< an integer of at least 1
  Positive,     ///< a number greater than 0
  Share,        ///< a number greater than 0 and at most 1
  Switch,       ///< true or false
  Architecture, ///< "cpu", or "sm_90"
  Rates,        ///< [[size, rate], ...] with rising sizes, both greater than 0
  Products,     ///< [[m, n, k, rate, rate, rate], ...] over all combinations of some sizes
  Strips,       ///< [[bytes, bytes, rate], ...], the same
  Scores,       ///< [[positions, width, rate, rate], ...], the same
};

/// A checked figure; only the member of its kind is set.
struct Figure {
  std::string text;
  int64_t integer = 0;
  double number = 0;
  bool flag = false;
  Curve curve;
  ShapeTable shapes;
};

struct ClusterKey {
  std::string_view path; ///< dotted
  FigureKind kind;
  bool required; ///< in a description without "base"
  std::string_view unit, note;
  void (*set)(Cluster &, Figure &&); ///< null: the reader itself takes it
};

/// All rows, in the order of the reference.
std::span<const ClusterKey> clusterKeys();

/// "a number greater than 0": for messages and the reference.
std::string_view spellExpected(FigureKind kind);

/// The text of a built-in description, or "".
std::string_view builtinClusterText(std::string_view name);

} // namespace ds::config

#endif // DS_LIB_CONFIG_CLUSTERKEYS_H
