//===- ProductChoices.h - The forms that a tuning has given to products ----------===//
#ifndef DS_PASSES_PRODUCTCHOICES_H
#define DS_PASSES_PRODUCTCHOICES_H

#include "ds/Dialect/Ds.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace mlir::ds {

/// Calls of one product.
struct ProductChoice {
  std::string product, form; ///< as rt::productKey and rt::spell have them
  int64_t calls = 0;
  double seconds = 0; ///< of one, as measured
};

/// The products of `module` whose times were measured, in program order.
std::vector<ProductChoice> productChoices(ModuleOp module);

} // namespace mlir::ds

#endif // DS_PASSES_PRODUCTCHOICES_H
