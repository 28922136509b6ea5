//===- PlanSettings.cpp - What a plan is asked for with ------------------------------===//
#include "ds/Planner/PlanSettings.h"

#include "llvm/ADT/StringRef.h"

using namespace ds::planner;

InputKind PlanSettings::inputKind() const {
  llvm::StringRef name(input);
  if (name.ends_with(".pt") || name.ends_with(".pth") || name.ends_with(".ts"))
    return InputKind::TorchScript;
  return name.ends_with(".json") ? InputKind::HfConfig : InputKind::Mlir;
}
