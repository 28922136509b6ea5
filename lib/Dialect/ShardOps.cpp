//===- ShardOps.cpp - Verifiers of buckets and sharded states --------------------===//
#include "OpHelpers.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace mlir::ds;
namespace rt = ::ds::rt;

//===----------------------------------------------------------------------===//
// BucketOp
//===----------------------------------------------------------------------===//

/// The member's declaration; null, with a diagnostic, where it is no parameter or has another element type
/// than `element`, which is set where it is null (C1).
static StateOp lookupMember(BucketOp bucket, SymbolTableCollection &symbols, FlatSymbolRefAttr name,
                            Type &element) {
  auto member = symbols.lookupNearestSymbolFrom<StateOp>(bucket, name);
  if (!member || member.getRole() != Role::Parameter || member.getBucket()) {
    bucket.emitOpError("expects members that are parameters, but got ") << name;
    return {};
  }
  Type own = member.getTensorType().getElementType();
  if (!element)
    element = own;
  if (element == own)
    return member;
  InFlightDiagnostic error = bucket.emitOpError("expects members of ") << element << ", but got " << own;
  error.attachNote(member.getLoc()) << "member " << name << " is declared here";
  return {};
}

/// Verifies that no member of `bucket` is one of an earlier bucket or twice in this one (C1).
static LogicalResult verifyMembersOnce(BucketOp bucket) {
  SmallPtrSet<Attribute, 16> seen;
  for (Attribute member : bucket.getMembers())
    if (!seen.insert(member).second)
      return bucket.emitOpError("expects each parameter in one bucket at most, but got ")
             << member << " twice";
  for (auto other : bucket->getParentOfType<ModuleOp>().getOps<BucketOp>()) {
    if (other == bucket)
      return success();
    for (Attribute member : other.getMembers())
      if (seen.contains(member)) {
        InFlightDiagnostic error =
            bucket.emitOpError("expects each parameter in one bucket at most, but got ") << member;
        error.attachNote(other.getLoc()) << "it is a member of this one too";
        return error;
      }
  }
  return success();
}

/// Verifies that the members are parts of one kind, so that one exchange serves all (C4).
static LogicalResult verifyAlike(BucketOp bucket, ArrayRef<StateOp> members) {
  MeshOp mesh = MeshOp::lookup(bucket);
  for (StateOp member : members.drop_front(members.empty() ? 0 : 1)) {
    StateOp first = members.front();
    auto refuse = [&](const Twine &expected, const Twine &got) -> LogicalResult {
      InFlightDiagnostic error = bucket.emitOpError("expects members ")
                                 << expected << ", as @" << first.getSymName() << " is, but got " << got;
      error.attachNote(member.getLoc()) << "member @" << member.getSymName() << " is declared here";
      return error;
    };
    auto spellAxes = [&](rt::AxisSet axes) { return mesh ? mesh.getMesh().spell(axes) : ""; };
    if (first.getCutAxes() != member.getCutAxes())
      return refuse("cut along " + spellAxes(first.getCutAxes()), spellAxes(member.getCutAxes()));
    if (first.getAddendAxes() != member.getAddendAxes())
      return refuse("with addends along " + spellAxes(first.getAddendAxes()),
                    spellAxes(member.getAddendAxes()));
    if (first.getCopy() != member.getCopy())
      return refuse(first.getCopy() ? "that are copies" : "that are no copies",
                    member.getCopy() ? "a copy" : "none");
  }
  return success();
}

/// Verifies that the members, which have `sizes` elements, are aligned, apart and inside (C2).
static LogicalResult verifyLayout(BucketOp bucket, ArrayRef<int64_t> sizes) {
  if (bucket.getOffsets().size() != sizes.size())
    return bucket.emitOpError("expects ")
           << sizes.size() << " offsets, one per member, but got " << bucket.getOffsets().size();
  int64_t elements = bucket.getElements();
  SmallVector<std::pair<int64_t, int64_t>> windows;
  for (auto [offset, size] : llvm::zip_equal(bucket.getOffsets(), sizes)) {
    if (offset < 0 || offset % BucketOp::kAlignment != 0)
      return bucket.emitOpError("expects offsets that are multiples of ")
             << BucketOp::kAlignment << ", but got " << offset;
    if (size > elements || offset > elements - size)
      return bucket.emitOpError("expects members inside ")
             << elements << " elements, but got one of " << size << " at " << offset;
    windows.push_back({offset, size});
  }
  llvm::sort(windows);
  for (size_t index = 1; index < windows.size(); ++index)
    if (windows[index - 1].first + windows[index - 1].second > windows[index].first)
      return bucket.emitOpError("expects members that do not overlap, but got one of ")
             << windows[index - 1].second << " elements at " << windows[index - 1].first << " before one at "
             << windows[index].first;
  return success();
}

LogicalResult BucketOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  Type element;
  SmallVector<int64_t> sizes;
  SmallVector<StateOp> members;
  for (auto name : getMembers().getAsRange<FlatSymbolRefAttr>()) {
    StateOp member = lookupMember(*this, symbolTable, name, element);
    if (!member)
      return failure();
    sizes.push_back(member.getLocalType().getNumElements());
    members.push_back(member);
  }
  if (failed(verifyMembersOnce(*this)) || failed(verifyLayout(*this, sizes)) ||
      failed(verifyAlike(*this, members)))
    return failure();
  int64_t elements = getElements();
  if (elements <= 0 || elements % kAlignment != 0) // C3.
    return emitOpError("expects a positive multiple of ") << kAlignment << " elements, but got " << elements;
  return success();
}

//===----------------------------------------------------------------------===//
// StateOp: buckets and shards
//===----------------------------------------------------------------------===//

/// Number of ranks that `entry` of a state's shards cuts its dimension for.
static int64_t partsOf(MeshOp mesh, Attribute entry) {
  auto axes = dyn_cast<AxesAttr>(entry);
  return axes && mesh ? std::max<int64_t>(mesh.getSize(axes), 1) : 1;
}

/// Verifies that the state with a bucket fits it (C2, C3, C7, C10).
static LogicalResult verifyBucketState(StateOp state, BucketOp bucket, SymbolTableCollection &symbols) {
  if (!bucket)
    return state.emitOpError("expects a bucket, but got ") << state.getBucketAttr();
  Role role = state.getRole();
  if (role == Role::Buffer || role == Role::Scalar || state.getTrainable() || state.getAliases())
    return state.emitOpError(
               "expects a state with a bucket to be an untrained parameter, gradient, moment or "
               "master without aliases, but got role ")
           << stringifyRole(role);
  if (state.getView() || state.getExisting() || state.getPieces())
    return state.emitOpError("expects a state with a bucket to have no view: its members have theirs");
  RankedTensorType type = state.getTensorType();
  int64_t elements = bucket.getElements();
  if (type.getShape() != ArrayRef<int64_t>(elements)) {
    InFlightDiagnostic error = state.emitOpError("expects ") << elements << " elements, but got " << type;
    error.attachNote(bucket.getLoc()) << "bucket " << state.getBucketAttr() << " is declared here";
    return error;
  }
  if (role != Role::Parameter || bucket.getMembers().empty())
    return success();
  auto member =
      symbols.lookupNearestSymbolFrom<StateOp>(bucket, cast<FlatSymbolRefAttr>(bucket.getMembers()[0]));
  if (!member || member.getTensorType().getElementType() == type.getElementType())
    return success();
  return state.emitOpError("expects the members' element type ")
         << member.getTensorType().getElementType() << ", but got " << type.getElementType();
}

/// Verifies that `shards` of `state` cuts it (C4), into parts that a bucket can have (C3).
static LogicalResult verifyShards(StateOp state) {
  RankedTensorType type = state.getTensorType();
  ArrayAttr shards = *state.getShards();
  ArrayRef<int64_t> view = state.getView().value_or(type.getShape());
  if (shards.size() != view.size()) {
    InFlightDiagnostic error = state.emitOpError("expects one entry in shards per dimension of ");
    (state.getView() ? error << "the view " << state.getViewAttr() : error << type)
        << ", but got " << shards.size();
    return error;
  }
  SmallVector<StringAttr> names;
  for (Attribute entry : shards)
    if (auto axes = dyn_cast<AxesAttr>(entry))
      llvm::append_range(names, axes.getNames());
  if (names.empty())
    return success();
  if (failed(verifyAxes(state, names)))
    return failure();
  MeshOp mesh = MeshOp::lookup(state);
  for (auto [index, entry] : llvm::enumerate(shards))
    if (view[index] % partsOf(mesh, entry) != 0) {
      InFlightDiagnostic error = state.emitOpError("expects ")
                                 << partsOf(mesh, entry) << " ranks to divide dimension " << index;
      (state.getView() ? error << " of its view" : error) << ", but got ";
      state.getView() ? error << view[index] : error << type;
      return error;
    }
  int64_t part = state.getLocalType().getNumElements();
  if (state.getBucket() && part % BucketOp::kAlignment != 0)
    return state.emitOpError("expects parts of a multiple of ")
           << BucketOp::kAlignment << " elements for each rank, but got " << part;
  return success();
}

/// Verifies that `state` is cut in its pieces (C10).
static LogicalResult verifyPieces(StateOp state) {
  if (!state.getPieces())
    return success();
  MeshOp mesh = MeshOp::lookup(state);
  const std::string mistake = rt::findMistake(mesh ? mesh.getMesh() : rt::Mesh(), state.getLayout(),
                                              state.getTensorType().getShape());
  return mistake.empty() ? success() : state.emitOpError() << mistake;
}

/// The view of `state` without cuts.
static rt::Layout viewOf(StateOp state) {
  rt::Layout layout;
  if (std::optional<ArrayRef<int64_t>> view = state.getView())
    layout.view = view->vec();
  layout.existing = state.getExisting();
  return layout;
}

/// What keeps the view of `state` from being one (C7, C8); empty where nothing does.
static std::string findViewMistake(StateOp state) {
  if (!state.getView() && !state.getExisting())
    return {};
  return rt::findMistake(rt::Mesh(), viewOf(state), state.getTensorType().getShape());
}

/// Verifies the addend axes of a parameter's gradient and where else it is, and that nothing else has any
/// (C6).
static LogicalResult verifyAddends(StateOp state) {
  if (!state.getAddends() && !state.getCopy() && !state.getTied())
    return success();
  if (state.getRole() != Role::Parameter || state.getBucket())
    return state.emitOpError("expects addends and copies of parameters without a bucket, but got role ")
           << stringifyRole(state.getRole());
  MeshOp stages = MeshOp::lookup(state);
  const AxesAttr axes = stages ? stages.getStagesAttr() : AxesAttr();
  if (auto tied = state.getTied();
      tied && (!axes || int64_t(*tied) < 0 || int64_t(*tied) >= stages.getSize(axes)))
    return state.emitOpError("expects to be tied to a stage of the mesh, but got ") << *tied;
  if (!state.getAddends())
    return success();
  if (failed(verifyAxes(state, state.getAddends()->getNames())))
    return failure();
  MeshOp mesh = MeshOp::lookup(state);
  const rt::AxisSet both = mesh.find(*state.getAddends()) & state.getCutAxes();
  if (both.isEmpty())
    return success();
  return state.emitOpError("expects addends along axes that do not cut it, but got ")
         << mesh.getMesh().spell(both);
}

LogicalResult StateOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  if (FlatSymbolRefAttr owner = getOwnerAttr()) {
    auto parameter = symbolTable.lookupNearestSymbolFrom<StateOp>(*this, owner);
    if (!parameter || parameter.getRole() != Role::Parameter) // C1.
      return emitOpError("expects its owner to be a parameter, but got ") << owner;
  }
  if (FlatSymbolRefAttr name = getBucketAttr())
    if (failed(verifyBucketState(*this, symbolTable.lookupNearestSymbolFrom<BucketOp>(*this, name),
                                 symbolTable)))
      return failure();
  if (std::string mistake = findViewMistake(*this); !mistake.empty())
    return emitOpError() << mistake;
  if (failed(getShards() ? verifyShards(*this) : success()) || failed(verifyPieces(*this)))
    return failure();
  return verifyAddends(*this);
}

rt::AxisSet StateOp::getCutAxes() {
  rt::AxisSet axes;
  ArrayAttr shards = getShardsAttr();
  MeshOp mesh = shards ? MeshOp::lookup(*this) : MeshOp();
  if (mesh)
    for (Attribute entry : shards)
      axes = axes | mesh.find(dyn_cast<AxesAttr>(entry));
  return axes;
}

rt::AxisSet StateOp::getAddendAxes() {
  MeshOp mesh = MeshOp::lookup(*this);
  if (!mesh)
    return {};
  return (mesh.find(mesh.getSamplesAttr()) | mesh.find(getAddendsAttr())) - getCutAxes();
}

bool StateOp::isSharded() {
  if (!getShards())
    return false;
  MeshOp mesh = MeshOp::lookup(*this);
  return llvm::any_of(*getShards(), [&](Attribute entry) { return partsOf(mesh, entry) > 1; });
}

rt::Layout StateOp::getLayout() {
  rt::Layout layout = viewOf(*this);
  if (std::optional<ArrayRef<int64_t>> pieces = getPieces())
    layout.pieces = pieces->vec();
  MeshOp mesh = MeshOp::lookup(*this);
  if (isSharded())
    for (Attribute entry : getShardsAttr()) {
      auto axes = dyn_cast<AxesAttr>(entry);
      layout.cuts.push_back(axes ? mesh.find(axes) : rt::AxisSet());
    }
  return layout;
}

// A bucket asks before its members are verified: for a state that is none any answer will do.
RankedTensorType StateOp::getLocalType() {
  RankedTensorType type = getTensorType();
  SmallVector<int64_t> sizes(getView().value_or(type.getShape()));
  if (ArrayAttr shards = getShardsAttr()) {
    MeshOp mesh = MeshOp::lookup(*this);
    for (auto [size, entry] : llvm::zip(sizes, shards))
      size /= partsOf(mesh, entry);
  }
  if (!getView())
    return type.clone(sizes);
  return findViewMistake(*this).empty() ? type.clone(rt::packedShape(viewOf(*this), type.getShape(), sizes))
                                        : type;
}
