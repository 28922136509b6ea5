//===- FamilyTable.h - The families of models that are read -----------------------===//
#ifndef DS_LIB_IMPORT_HF_FAMILYTABLE_H
#define DS_LIB_IMPORT_HF_FAMILYTABLE_H

#include "Architecture.h"

#include "llvm/ADT/StringRef.h"

namespace ds::hf {

/// A value of model_type.
struct Family {
  llvm::StringLiteral modelType;
  std::unique_ptr<Architecture> (*read)(const Section &);
  llvm::StringLiteral built;     ///< what transformers calls the model that `read` makes
  llvm::StringLiteral base;      ///< the same without a head: checkpoints of it have no other parameters
  llvm::StringLiteral wider{""}; ///< one that has another head besides, which is left out
};

/// The family that model_type names; null, and refused with the nearest ones, where it is none.
const Family *findFamily(const ConfigFile &file);

} // namespace ds::hf

#endif // DS_LIB_IMPORT_HF_FAMILYTABLE_H
