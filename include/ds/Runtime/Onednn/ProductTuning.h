//===- ProductTuning.h - Which form of each product is fastest on a machine -----===//
//
// `ds-run --tune` measures the products of a program and writes this file; `ds-opt --tuning` plans with it.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_ONEDNN_PRODUCTTUNING_H
#define DS_RUNTIME_ONEDNN_PRODUCTTUNING_H

#include "ds/Runtime/Program/ProductForm.h"
#include "ds/Support/Error.h"

#include <map>

namespace ds::rt {

struct TunedProduct {
  ProductForm form;        ///< the fastest
  double seconds = 0;      ///< that it takes
  double plainSeconds = 0; ///< without a choice
};

struct ProductTuning {
  std::string processor, date; ///< where and when it was measured
  uint32_t threads = 0;        ///< with which it was measured; holds for a program of as many
  std::map<std::string, TunedProduct> products; ///< by productKey
};

/// As JSON; equal tunings are equal texts.
std::string printTuning(const ProductTuning &tuning);
/// Usage: the file cannot be read or is none of `ds-run --tune`.
Result<ProductTuning> readTuning(const std::string &path);

} // namespace ds::rt

#endif // DS_RUNTIME_ONEDNN_PRODUCTTUNING_H
