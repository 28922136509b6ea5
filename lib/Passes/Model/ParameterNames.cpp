//===- ParameterNames.cpp - Parameters as people name them on a command line --------===//
#include "ParameterNames.h"

#include "ds/Support/EditDistance.h"

#include "llvm/ADT/StringExtras.h"

#include <set>

using namespace mlir;
using namespace mlir::ds;

SmallVector<StateOp> mlir::ds::parametersOf(ModuleOp module) {
  SmallVector<StateOp> parameters;
  for (StateOp state : module.getOps<StateOp>())
    if (state.getRole() == Role::Parameter)
      parameters.push_back(state);
  return parameters;
}

SmallVector<StringRef> mlir::ds::namesOf(StateOp parameter) {
  SmallVector<StringRef> names = {parameter.getSymName()};
  if (ArrayAttr aliases = parameter.getAliasesAttr())
    llvm::append_range(names, aliases.getAsValueRange<StringAttr>());
  return names;
}

/// Of "*.attn.q_proj" and "h.0.attn.c_proj" "*.attn.c_proj": the end with as many components.
static std::string comparable(StringRef pattern, StringRef name) {
  if (!pattern.contains('*'))
    return name.str();
  size_t from = name.size();
  for (size_t dots = std::max<size_t>(pattern.count('.'), 1); dots > 0 && from != StringRef::npos; --dots)
    from = name.rfind('.', from);
  return from == StringRef::npos ? name.str() : "*" + name.drop_front(from).str();
}

std::string mlir::ds::nearestNames(StringRef pattern, ArrayRef<std::string> names) {
  constexpr size_t kMostNames = 3;
  std::set<std::pair<size_t, std::string>> near; // by distance, then by name
  for (const std::string &name : names) {
    std::string candidate = comparable(pattern, name);
    near.insert({::ds::editDistance(pattern.str(), candidate), candidate});
    if (near.size() > kMostNames)
      near.erase(std::prev(near.end()));
  }
  if (near.empty())
    return "the model has none";
  return "the nearest are " +
         llvm::join(llvm::map_range(near, [](const auto &each) { return "'" + each.second + "'"; }), ", ");
}

LogicalResult mlir::ds::emitStatus(ModuleOp module, const ::ds::Status &status) {
  if (status)
    return success();
  InFlightDiagnostic error = emitError(module.getLoc()) << status.error().message;
  if (!status.error().hint.empty())
    error.attachNote() << status.error().hint;
  return error;
}
