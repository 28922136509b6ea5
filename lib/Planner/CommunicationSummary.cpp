//===- CommunicationSummary.cpp - What ranks send in a step, and what they keep --===//
//
// Sums up the collectives of each segment, as often as a step runs it, and puts the decisions that
// ds-schedule-communication left behind into sentences.
//
//===---------------------------------------------------------------------------===//
#include "StepSimulation.h"
#include "ds/Planner/PlanSummary.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::ds;
namespace report = ::ds::report;

/// What stays gathered in `func`, what does not, and why.
static void describeGathers(func::FuncOp func, report::PlanReport &report) {
  if (auto gathers = func->getAttrOfType<DictionaryAttr>(kGathersAttr))
    for (StringRef note : gathers.getAs<ArrayAttr>("notes").getAsValueRange<StringAttr>())
      report.notes.push_back("@" + func.getSymName().str() + ": " + note.str());
}

void mlir::ds::addCommunication(ModuleOp module, report::PlanReport &report) {
  MeshOp mesh = MeshOp::lookup(module);
  if (!mesh)
    return;
  auto size = [&](StringRef axis) { return static_cast<uint32_t>(mesh.getSize(axis)); };
  report.mesh = {size("dp"), size("tp"), size("pp"), size("sp")};
  report.world = static_cast<uint32_t>(mesh.getNumRanks());
  llvm::MapVector<CollectiveKind, int64_t> bytes;
  for (func::FuncOp func : getSegments(module)) {
    int64_t runs = runsPerStep(func);
    for (CommunicateOp op : func.getOps<CommunicateOp>())
      bytes[op.getKind()] += runs * op.getSentBytes(mesh.getSize(op.getAxes()));
    if (runs > 0)
      describeGathers(func, report);
  }
  for (auto [kind, sent] : bytes)
    report.predicted.communicationBytes.push_back({stringifyCollectiveKind(kind).str(), sent});
  llvm::sort(report.predicted.communicationBytes);
}
