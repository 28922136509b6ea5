//===- HfModel.h - Builds a model from a Hugging Face config.json ---------------===//
//
// The architectures that config.json names are known: what a TorchScript archive spells out op by op is built
// from a page of numbers, in the form that the importer would give. No weight is read or made here.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_IMPORT_HFMODEL_H
#define DS_IMPORT_HFMODEL_H

#include "ds/Import/HfRequest.h"
#include "ds/Support/Error.h"
#include "ds/Support/Notice.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace ds {

struct HfModel {
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< phase model; @forward(input_ids, labels) returns the loss
  std::vector<Notice> notices;              ///< what the user should know, one line each
};

/// Builds the model. Errors: `Invalid` where the configuration is wrong, contradicts itself or asks for what
/// is not supported, or where the inputs do not fit the model; `Usage` for a misspelt input; `Io` where the
/// file cannot be read. The context must have the dialects ds and func loaded.
Result<HfModel> buildHfModel(const HfRequest &request, mlir::MLIRContext &context);

/// The same from a text that `request.path` only names.
Result<HfModel> buildHfModelFromText(const HfRequest &request, const std::string &text,
                                     mlir::MLIRContext &context);

} // namespace ds

#endif // DS_IMPORT_HFMODEL_H
