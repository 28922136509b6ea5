//===- PlanBuffers.cpp - What a planned module reserves, and its fullest moment --===//
#include "PlanBuffers.h"

#include "ds/Dialect/Work.h"
#include "ds/Passes/CommandMemory.h"
#include "ds/Passes/LateUpdates.h"
#include "ds/Passes/StateNames.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::ds;
using ::ds::report::Category;
using ::ds::report::PeakPart;

Category mlir::ds::categoryOf(AllocOp alloc) {
  switch (alloc.getCategory()) {
  case AllocCategory::Gradients:
    return Category::Gradients;
  case AllocCategory::Communication:
    return Category::Communication;
  case AllocCategory::Workspace:
    return Category::Workspace;
  case AllocCategory::Activations:
  case AllocCategory::Optimizer: // copies that one update leaves for itself, no state of the optimizer
    return Category::Activations;
  }
  llvm_unreachable("all categories are handled");
}

/// The part of a peak that a state of the step is.
static PeakPart partOf(StateOp state) {
  if (state.getGatheredFrom())
    return PeakPart::Gathered;
  if (state.getSlots())
    return PeakPart::Waiting;
  if (isCarried(state)) // the step's gradients, and what was made of all of them
    return state.getTensorType().getRank() > 0 ? PeakPart::Accumulators : PeakPart::Scalars;
  switch (state.getRole()) {
  case Role::Parameter:
    return PeakPart::Parameters;
  case Role::Buffer:
    return PeakPart::ModelBuffers;
  case Role::Gradient:
    return PeakPart::Accumulators;
  case Role::Moment:
    return PeakPart::Moments;
  case Role::Master:
    return PeakPart::Masters;
  case Role::Scalar:
    return PeakPart::Scalars;
  }
  llvm_unreachable("all roles are parts");
}

std::string mlir::ds::spellType(BufferType type) {
  std::string text;
  llvm::raw_string_ostream out(text);
  for (int64_t size : type.getTensor().getShape())
    out << size << "x";
  out << type.getTensor().getElementType();
  return text;
}

/// The place that planning gave a state or input.
static int64_t toOffset(Attribute offset) {
  auto integer = dyn_cast_or_null<IntegerAttr>(offset);
  return integer ? integer.getInt() : 0;
}

std::vector<WholeBuffer> mlir::ds::findWholeBuffers(ModuleOp module) {
  std::vector<WholeBuffer> whole;
  SymbolTable symbols(module);
  for (StateOp state : getPlacedStates(module))
    whole.push_back({nameOfState(state, symbols), partOf(state),
                     BufferType::getContiguous(state.getLocalType(), state.getHome()),
                     toOffset(state.getOffsetAttr()), state.isSharded()});
  llvm::StringSet<> seen;
  for (func::FuncOp func : getSegments(module))
    for (unsigned index = 0; index < func.getNumArguments(); ++index)
      if (StringAttr name = getInputOf(func, index); name && seen.insert(name.getValue()).second)
        whole.push_back({name.str(), PeakPart::Inputs, cast<BufferType>(func.getArgumentTypes()[index]),
                         toOffset(func.getArgAttr(index, kOffsetAttr))});
  return whole;
}

LiveCurve mlir::ds::findLiveCurve(ModuleOp module, Space space) {
  LiveCurve curve;
  for (func::FuncOp func : getSegments(module)) {
    const std::vector<int64_t> live = getMemory(func).liveBytes(uint32_t(space));
    auto most = std::max_element(live.begin(), live.end());
    if (most != live.end() && *most > curve.peak.bytes)
      curve.peak = {func, most - live.begin(), *most};
    llvm::append_range(curve.bytes, live);
  }
  return curve;
}

int64_t mlir::ds::findLeastLive(ModuleOp module) {
  int64_t whole = 0, most = 0;
  for (const WholeBuffer &buffer : findWholeBuffers(module))
    if ((buffer.part != PeakPart::Gathered || buffer.isSharded) && buffer.type.getSpace() == Space::Device)
      whole += buffer.type.getSizeInBytes();
  for (func::FuncOp func : getSegments(module))
    most = std::max(most, getMemory(func, LivesUntil::Needed).mostBytes(uint32_t(Space::Device)));
  return whole + most;
}

std::string Moment::spell(SymbolTable &symbols) const {
  if (!func)
    return "";
  ScheduledOpInterface op = ScheduledFunction(func).commands[command];
  std::string layer = layerOf(op);
  return op.getLabel(symbols) + (layer.empty() ? "" : " " + layer) + " (" +
         func::FuncOp(func).getSymName().str() + ")";
}
