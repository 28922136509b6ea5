//===- CommunicationSummary.cpp - What ranks send in a step, and what they keep --===//
//
// Sums up the collectives of each segment, as often as a step runs it, and puts the decisions that
// ds-schedule-communication left behind into sentences.
//
//===---------------------------------------------------------------------------===//
#include "StepPlay.h"
#include "TrainingAttr.h"
#include "ds/Passes/LowerToProgram.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;

/// At most four of `names`, and how many more there are.
static std::string listNames(ArrayAttr names) {
  SmallVector<StringRef> shown(llvm::to_vector(names.getAsValueRange<StringAttr>()));
  size_t more = shown.size() > 4 ? shown.size() - 4 : 0;
  shown.truncate(shown.size() - more);
  return llvm::join(shown, ", ") + (more ? " and " + std::to_string(more) + " more" : "");
}

/// What stays gathered between the uses in `func`, and what does not.
static void describeGathers(func::FuncOp func, analysis::PlanReport &report) {
  auto gathers = func->getAttrOfType<DictionaryAttr>(kGathersAttr);
  if (!gathers)
    return;
  auto kept = gathers.getAs<ArrayAttr>("kept"), again = gathers.getAs<ArrayAttr>("gathered_again");
  std::string where = "@" + func.getSymName().str() + ": ";
  if (!kept.empty())
    report.notes.push_back(where + std::to_string(kept.size()) + " gathered values stay for backward (" +
                           analysis::formatBytes(gathers.getAs<IntegerAttr>("kept_bytes").getInt()) +
                           "): " + listNames(kept) + "; there is room, and each saves a gather");
  if (!again.empty())
    report.notes.push_back(
        where + std::to_string(again.size()) +
        " values are gathered again for backward: " + listNames(again) +
        "; memory, stage3_max_live_parameters or stage3_max_reuse_distance forbids to keep them");
}

void mlir::ds::addCommunication(ModuleOp module, analysis::PlanReport &report) {
  MeshOp mesh = MeshOp::lookup(module);
  if (!mesh)
    return;
  auto size = [&](MeshAxis axis) { return static_cast<uint32_t>(mesh.getSize(axis)); };
  report.mesh = {size(MeshAxis::Data), size(MeshAxis::Tensor), size(MeshAxis::Pipeline),
                 size(MeshAxis::Sequence)};
  report.world = report.mesh.dp * report.mesh.tp * report.mesh.pp * report.mesh.sp;
  FailureOr<TrainingOptions> training = readTrainingAttr(module);
  int64_t accumulation = succeeded(training) ? training->accumulation : 1;
  llvm::MapVector<CollectiveKind, int64_t> bytes;
  for (func::FuncOp func : getSegments(module)) {
    int64_t runs = runsPerStep(func, accumulation);
    for (CommunicateOp op : func.getOps<CommunicateOp>())
      bytes[op.getKind()] += runs * op.getSentBytes(mesh.getSize(op.getAxis()));
    if (runs > 0)
      describeGathers(func, report);
  }
  for (auto [kind, sent] : bytes)
    report.predicted.communicationBytes.push_back({stringifyCollectiveKind(kind).str(), sent});
  llvm::sort(report.predicted.communicationBytes);
}
