//===- Exchanges.cpp - In which order stages meet --------------------------------===//
#include "Support/Exchanges.h"
#include "ds/Dialect/Collectives.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/BufferAccess.h"
#include "ds/Runtime/Program/Messages.h"

using namespace mlir;
using namespace mlir::ds;

bool mlir::ds::meetsStages(Operation *op) {
  AxesAttr axes;
  if (auto collective = dyn_cast<CollectiveOpInterface>(op))
    axes = collective.getAxes();
  else if (auto communicate = dyn_cast<CommunicateOp>(op))
    axes = communicate.getAxes();
  MeshOp mesh = axes ? MeshOp::lookup(op) : MeshOp();
  return mesh && mesh.find(axes).hasAny(mesh.find(mesh.getStagesAttr()));
}

bool mlir::ds::isMessage(Operation *op) {
  auto communicate = dyn_cast_or_null<CommunicateOp>(op);
  return communicate && traitsOf(communicate.getKind()).isMessage;
}

std::string mlir::ds::nameOfMessage(CommunicateOp message) {
  std::string layer = layerOf(message);
  return layer.empty() ? "message" : layer;
}

/// Whether `op` can be of one exchange with the messages of `before`, which it stands behind.
static bool continues(ArrayRef<CommunicateOp> before, CommunicateOp op) {
  CommunicateOp first = before.front();
  return before.size() < ::ds::rt::kMaxMessages && first.getStream() == op.getStream() &&
         first.getAxes() == op.getAxes() && llvm::none_of(before, [&](CommunicateOp other) {
           return conflict(accessesOf(other), accessesOf(op));
         });
}

Exchanges::Exchanges(Block &block) {
  bool isOpen = false; // whether the last exchange may go on
  for (Operation &op : block) {
    if (!isa<ScheduledOpInterface>(op))
      continue;
    if (!isMessage(&op)) {
      isOpen = false;
      continue;
    }
    auto message = cast<CommunicateOp>(op);
    if (!isOpen || !continues(list.back(), message))
      list.emplace_back();
    list.back().push_back(message);
    places[message] = {list.size() - 1, list.back().size() - 1};
    isOpen = true;
  }
}

ArrayRef<CommunicateOp> Exchanges::of(Operation *op) const {
  auto place = places.find(op);
  return place == places.end() ? ArrayRef<CommunicateOp>() : ArrayRef(list[place->second.first]);
}

uint32_t Exchanges::behind(CommunicateOp op) const {
  auto [exchange, place] = places.lookup(op);
  return list[exchange].size() - 1 - place;
}
